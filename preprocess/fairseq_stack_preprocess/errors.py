"""The one exception for mistakes that a user can fix, and the checks of numbers that raise it."""

from __future__ import annotations


class PrepareError(ValueError):
    """An option, an input or a target folder that cannot be used; the message is one line for the user."""


def flag_of(name: str) -> str:
    """The option of the command line that sets an attribute of the options."""
    return "--" + name.replace("_", "-")


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


def require_ranges(options: object, **ranges: tuple[int | None, int | None]) -> None:
    """Raise PrepareError unless each named attribute is None or lies in its range.

    A range is its minimum and its maximum; None: there is none.
    """
    for name, (least, greatest) in ranges.items():
        if least is not None:
            require_at_least(flag_of(name), getattr(options, name), least)
        if greatest is not None:
            require_at_most(flag_of(name), getattr(options, name), greatest)
