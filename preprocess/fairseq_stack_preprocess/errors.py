"""The one exception for mistakes that a user can fix, and the checks of numbers that raise it."""

from __future__ import annotations


class PrepareError(ValueError):
    """An option, an input or a target folder that cannot be used; the message is one line for the user."""


def flag_of(name: str) -> str:
    """The option of the command line that sets an attribute of the options."""
    return "--" + name.replace("_", "-")


def require_range(flag: str, value: int | None, least: int | None = None, greatest: int | None = None) -> None:
    """Raise PrepareError unless ``value`` is in a range, or is None, as an option that is not given.

    ``flag`` is the option's name on the command line; a bound of None does not bind.
    """
    if value is not None and least is not None and value < least:
        raise PrepareError(f"{flag} must be at least {least}, got {value}")
    if value is not None and greatest is not None and value > greatest:
        raise PrepareError(f"{flag} must be at most {greatest}, got {value}")


def require_ranges(options: object, **ranges: tuple[int | None, int | None]) -> None:
    """Raise PrepareError unless each named attribute is in its range: see :func:`require_range`."""
    for name, (least, greatest) in ranges.items():
        require_range(flag_of(name), getattr(options, name), least, greatest)
