"""What ``fairseq-stack evaluate-...`` prints and writes."""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from fairseq_stack.errors import UserError
from fairseq_stack.files import require_writable

if TYPE_CHECKING:
    from fairseq_stack.evaluation.results import Model, Row

DIGITS_OF_SHA = 8


class Result(Protocol):
    """A result with a signature, which can be written as JSON."""

    @property
    def signature(self) -> str: ...

    def write(self, path: Path) -> None: ...


def add_outputs(parser: argparse.ArgumentParser, row: str) -> None:
    """Declare ``--json``, and ``--csv`` with a row for each ``row``."""
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write the result to FILE")
    parser.add_argument("--csv", metavar="FILE", type=Path, help=f"also write a row for each {row} to FILE")


def check_outputs(args: argparse.Namespace) -> None:
    """Raise UserError if a file cannot be written: before the result is computed, which may take long."""
    if args.json is not None and args.json == args.csv:
        raise UserError(f"--json and --csv are the same file, {args.csv}; expected two")
    for path in filter(None, (args.json, args.csv)):
        require_writable(path)


def report(result: Result, lines: Sequence[str], rows: Sequence[Row], args: argparse.Namespace) -> None:
    """Print a result as lines and its signature, and write it and its rows where the options say."""
    from fairseq_stack.evaluation.results import write_rows

    print("\n".join([*lines, "", result.signature]))
    if args.json is not None:
        result.write(args.json)
    if args.csv is not None:
        write_rows(args.csv, rows)


def title(what: str, model: Model) -> str:
    """The first line of a result: on what, and of which model."""
    return f"{what}: {model.checkpoint} ({model.arch}, {model.parameters:,} parameters)"


def sha_of(content: object) -> str:
    """The beginning of the sha256 of what a result is about, for its signature; ``content`` is made of plain types."""
    return hashlib.sha256(repr(content).encode()).hexdigest()[:DIGITS_OF_SHA]
