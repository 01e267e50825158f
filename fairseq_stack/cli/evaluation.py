"""The contract of the commands ``fairseq-stack evaluate-...``; each of them has only what is particular to it."""

from __future__ import annotations

import argparse
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.intervals import Intervals
from fairseq_stack.evaluation.results import Result, Row, write_rows
from fairseq_stack.files import require_writable

from .arguments import Number, Subparsers

GREATEST = 1_000_000
"""The greatest number of resampled sets (and of samples), and the greatest seed."""

DIGITS_OF_SHA = 8


@dataclass(frozen=True)
class Evaluated:
    """What an evaluation has found.

    Attributes:
        result: the result.
        rows: the rows of ``--csv``.
        lines: what is printed below the result.
    """

    result: Result
    rows: Sequence[Row]
    lines: Sequence[str] = ()


class Evaluation(ABC):
    """A command that scores a trained model on data.

    It prints the tables of its result and the result's signature, and writes the result as JSON and rows as CSV where
    ``--json`` and ``--csv`` say. Whether these files can be written is tested before the result is computed, which may
    take long.

    Attributes:
        name: the name of the command, which is the kind of its result.
        summary: its line in the help of ``fairseq-stack``.
        description: the beginning of its own help.
        example: the end of its own help.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    description: ClassVar[str]
    example: ClassVar[str]

    @abstractmethod
    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments, :func:`add_outputs` among them."""

    @abstractmethod
    def evaluate(self, args: argparse.Namespace) -> Evaluated:
        """Compute the result that the arguments ask for.

        Raises:
            UserError: the data cannot be read, the checkpoint holds another kind of model, or they do not fit.
        """

    def add_parser(self, subparsers: Subparsers) -> None:
        """Declare the subcommand."""
        parser = subparsers.add_parser(self.name, help=self.summary, description=self.description, epilog=self.example)
        self.add_arguments(parser)
        parser.set_defaults(run=self.run)

    def run(self, args: argparse.Namespace) -> int:
        """Print the result, and write it."""
        if args.json is not None and args.json == args.csv:
            raise UserError(f"--json and --csv are the same file, {args.csv}; expected two")
        for path in filter(None, (args.json, args.csv)):
            require_writable(path)
        evaluated = self.evaluate(args)
        result = evaluated.result
        print("\n".join([*result.lines(), *evaluated.lines, "", result.signature]))
        if args.json is not None:
            result.write(args.json)
        if args.csv is not None:
            write_rows(args.csv, evaluated.rows)
        return 0


def add_split(parser: argparse.ArgumentParser, what: str = "the strings to score") -> None:
    """Declare ``--split``."""
    parser.add_argument("--split", metavar="NAME", default="test", help=f"{what} (default: test)")


def add_intervals(parser: argparse.ArgumentParser, seed_of: str = "bootstrap intervals") -> None:
    """Declare ``--bootstrap``, ``--confidence`` and ``--seed``, which decides on ``seed_of``."""
    parser.add_argument(
        "--bootstrap",
        action=Number,
        least=1,
        most=GREATEST,
        metavar="N",
        default=1000,
        help="resampled sets of strings behind each interval (default: 1000)",
    )
    parser.add_argument(
        "--confidence",
        action=Probability,
        type=float,
        metavar="P",
        default=0.95,
        help="probability of each interval (default: 0.95)",
    )
    parser.add_argument(
        "--seed", action=Number, least=0, most=GREATEST, metavar="N", default=0, help=f"seed of {seed_of} (default: 0)"
    )


class Probability(argparse.Action):
    """Stores a number between 0 and 1."""

    def __call__(self, parser: object, namespace: argparse.Namespace, value: Any, option: str | None = None) -> None:
        """Store the number; UserError if it is not between 0 and 1."""
        if not 0 < value < 1:
            raise UserError(f"{option} must be greater than 0 and less than 1, got {value:g}")
        setattr(namespace, self.dest, value)


def intervals_of(args: argparse.Namespace) -> Intervals:
    """The intervals that the arguments ask for."""
    return Intervals(args.bootstrap, args.confidence, args.seed)


def add_outputs(parser: argparse.ArgumentParser, row: str) -> None:
    """Declare ``--json``, and ``--csv`` with a row for each ``row``."""
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write the result to FILE")
    parser.add_argument("--csv", metavar="FILE", type=Path, help=f"also write a row for each {row} to FILE")


def sha_of(content: object) -> str:
    """The beginning of the sha256 of what a result is about, for its signature; ``content`` is made of plain types."""
    return hashlib.sha256(repr(content).encode()).hexdigest()[:DIGITS_OF_SHA]
