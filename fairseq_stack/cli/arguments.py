"""Parsing of arguments, as all subcommands do it."""

from __future__ import annotations

import argparse
from types import ModuleType
from typing import Any, NoReturn

from fairseq_stack.errors import USER_ERROR
from fairseq_stack_preprocess.errors import require_range

GREATEST_BEAM = 10_000
"""The maximum number of parses kept for a sentence."""


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
    least: int | None = None,
    most: int | None = None,
    metavar: str = "N",
) -> None:
    """Declare a whole number, at least ``least`` and at most ``most`` if they are given; a default is in its help."""
    shown = meaning if default is None else f"{meaning} (default: {default})"
    parser.add_argument(flag, action=_number(least, most), type=int, metavar=metavar, default=default, help=shown)


def _number(least: int | None, most: int | None) -> type[argparse.Action]:
    class Number(argparse.Action):
        def __call__(self, parser: object, namespace: argparse.Namespace, value: Any, option: Any = None) -> None:
            require_range(option, value, least, most)
            setattr(namespace, self.dest, value)

    return Number


def add_subcommand(subparsers: Any, module: ModuleType) -> None:
    """Declare the subcommand that a module is, see :mod:`fairseq_stack.cli`."""
    name = module.__name__.rpartition(".")[2].replace("_", "-")
    parser = subparsers.add_parser(name, help=module.SUMMARY, description=module.DESCRIPTION, epilog=module.EXAMPLE)
    module.add_arguments(parser)
    if hasattr(module, "run"):  # which a package of further subcommands lacks
        parser.set_defaults(run=module.run)
