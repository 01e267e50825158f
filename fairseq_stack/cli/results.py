"""What ``fairseq-stack evaluate-...`` prints and writes."""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from fairseq_stack.files import require_writable

if TYPE_CHECKING:
    from fairseq_stack.evaluation.results import Model

DIGITS_OF_SHA = 8


class Result(Protocol):
    """A result with a signature, which can be written as JSON."""

    @property
    def signature(self) -> str: ...

    def write(self, path: Path) -> None: ...


def add_json(parser: argparse.ArgumentParser) -> None:
    """Declare ``--json``."""
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write the result to FILE")


def check_json(args: argparse.Namespace) -> None:
    """Raise UserError if the result cannot be written: before it is computed, which may take long."""
    if args.json is not None:
        require_writable(args.json)


def report(result: Result, lines: Sequence[str], args: argparse.Namespace) -> None:
    """Print a result as lines and its signature, and write it if ``--json`` says where."""
    print("\n".join([*lines, "", result.signature]))
    if args.json is not None:
        result.write(args.json)


def title(what: str, model: Model) -> str:
    """The first line of a result: on what, and of which model."""
    return f"{what}: {model.checkpoint} ({model.arch}, {model.parameters:,} parameters)"


def sha_of(content: object) -> str:
    """The beginning of the sha256 of what a result is about, for its signature; ``content`` is made of plain types."""
    return hashlib.sha256(repr(content).encode()).hexdigest()[:DIGITS_OF_SHA]
