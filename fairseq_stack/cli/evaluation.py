"""What the commands ``fairseq-stack evaluate-...`` share: options, and what they print and write."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.intervals import Intervals
from fairseq_stack.evaluation.results import Result, Row, write_rows
from fairseq_stack.files import require_writable

from .arguments import add_number

GREATEST = 1_000_000
"""The maximum number of resampled sets (and of samples), and the maximum seed."""


def require_outputs(args: argparse.Namespace) -> None:
    """Raise UserError if what :func:`report` is to write cannot be written: before the scores, which may take long."""
    if args.json and args.csv and args.json.resolve() == args.csv.resolve():
        raise UserError(f"--json and --csv are the same file, {args.csv}; expected two")
    for path in filter(None, (args.json, args.csv)):
        require_writable(path)


def report(args: argparse.Namespace, result: Result, rows: Sequence[Row], lines: Sequence[str] = ()) -> int:
    """Write ``--json``, and the rows of ``--csv``, print a result, further lines and the signature; the exit code."""
    if args.json is not None:
        result.write(args.json)
    if args.csv is not None:
        write_rows(args.csv, rows)
    print("\n".join([*result.lines(), *lines, "", result.signature]))
    return 0


def add_split(parser: argparse.ArgumentParser, what: str = "the strings to score") -> None:
    """Declare ``--split``."""
    parser.add_argument("--split", metavar="NAME", default="test", help=f"{what} (default: test)")


def add_intervals(parser: argparse.ArgumentParser, seed_of: str = "bootstrap intervals") -> None:
    """Declare ``--bootstrap``, ``--confidence`` and ``--seed``, which decides on ``seed_of``."""
    sets = "resampled sets of strings behind each interval"
    add_number(parser, "--bootstrap", sets, 1000, least=1, most=GREATEST)
    parser.add_argument(
        "--confidence",
        action=Probability,
        type=float,
        metavar="P",
        default=0.95,
        help="confidence level of the intervals (default: 0.95)",
    )
    add_number(parser, "--seed", f"seed of {seed_of}", 0, least=0, most=GREATEST)


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
