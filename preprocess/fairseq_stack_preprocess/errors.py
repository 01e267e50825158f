"""The one exception for mistakes that a user can fix."""

from __future__ import annotations


class PrepareError(ValueError):
    """An option, an input or a target folder that cannot be used; the message is one line for the user."""


def require_at_most(flag: str, value: int | None, greatest: int) -> None:
    """Raise PrepareError unless ``value`` <= ``greatest`` or is None, as an option that is not given."""
    if value is not None and value > greatest:
        raise PrepareError(f"{flag} must be at most {greatest}, got {value}")


def require_at_least(flag: str, value: int | None, least: int) -> None:
    """Raise PrepareError unless ``value`` >= ``least`` or is None, as an option that is not given.

    ``flag`` is the option's name on the command line.
    """
    if value is not None and value < least:
        raise PrepareError(f"{flag} must be at least {least}, got {value}")
