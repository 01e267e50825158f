"""Parsing of arguments, as all subcommands do it."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn, TypeAlias

from fairseq_stack_preprocess.errors import require_at_least, require_at_most

USER_ERROR = 2
"""Exit code after a mistake of the user."""

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""The object to which ``add_parser`` of a subcommand adds its parser."""


def in_one_line(message: str) -> str:
    """The message with escapes for unprintable characters: file names may contain line breaks."""
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in message)


class Parser(argparse.ArgumentParser):
    """A parser that reports a mistake in one line and keeps the line breaks of descriptions.

    Its subparsers are of this class as well.
    """

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **settings)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse's, but arguments that the parser does not know are its own mistake, and not the main parser's."""
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return parsed, unknown

    def error(self, message: str) -> NoReturn:
        """Exit with code 2 after one line on standard error."""
        self.exit(USER_ERROR, f"{self.prog}: error: {in_one_line(message)} (see {self.prog} --help)\n")


class Number(argparse.Action):
    """Stores a whole number that has to be at least ``least`` and at most ``most``."""

    def __init__(self, *, least: int | None = None, most: int | None = None, **settings: Any) -> None:
        super().__init__(type=int, **settings)
        self.least, self.most = least, most

    def __call__(self, parser: object, namespace: argparse.Namespace, value: Any, option: Any = None) -> None:
        """Store the number; PrepareError if it is out of range."""
        if self.least is not None:
            require_at_least(option, value, self.least)
        if self.most is not None:
            require_at_most(option, value, self.most)
        setattr(namespace, self.dest, value)
