"""Parsing of arguments, as all subcommands do it."""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NoReturn, TypeAlias

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


def add_number(
    parser: argparse._ActionsContainer,
    flag: str,
    meaning: str,
    default: int | None = None,
    *,
    least: int,
    most: int | None = None,
    metavar: str = "N",
) -> None:
    """Declare a whole number that has to be at least ``least`` and at most ``most``; a default is in its help."""
    shown = meaning if default is None else f"{meaning} (default: {default})"
    parser.add_argument(flag, action=_number(least, most), type=int, metavar=metavar, default=default, help=shown)


def _number(least: int, most: int | None) -> type[argparse.Action]:
    class Number(argparse.Action):
        def __call__(self, parser: object, namespace: argparse.Namespace, value: Any, option: Any = None) -> None:
            require_at_least(option, value, least)
            if most is not None:
                require_at_most(option, value, most)
            setattr(namespace, self.dest, value)

    return Number


class Subcommand(ABC):
    """A command of ``fairseq-stack``.

    Attributes:
        name: its name.
        summary: its line in the help of the command that it belongs to.
        description: the beginning of its own help.
        example: the end of its own help.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    description: ClassVar[str]
    example: ClassVar[str]

    @abstractmethod
    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""

    @abstractmethod
    def run(self, args: argparse.Namespace) -> int:
        """Run the command, and return the exit code."""

    def add_parser(self, subparsers: Subparsers) -> None:
        """Declare the subcommand."""
        parser = subparsers.add_parser(self.name, help=self.summary, description=self.description, epilog=self.example)
        self.add_arguments(parser)
        parser.set_defaults(run=self.run)
