"""The command ``fairseq-stack``: what fairseq's own commands lack.

Each subcommand is a module of this package with ``add_parser(subparsers)``, which declares its options and
sets ``run`` as the default of that name, and ``run(args)``, which returns the exit code. Modules import what
takes long to load (torch, fairseq) inside ``run``, so that the command starts at once.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from fairseq_stack_preprocess.errors import PrepareError

from .. import __version__
from ..analysis.errors import AnalysisError
from ..errors import UserError
from . import average, doctor, prepare, report, show, user_dir
from .arguments import USER_ERROR, Parser

PROGRAM = "fairseq-stack"

SUBCOMMANDS = (average, doctor, prepare, report, show, user_dir)

INTERRUPTED = 130

OUTPUT_CLOSED = 141
"""What a shell reports of a program that SIGPIPE ends, which is how ``| head`` ends others."""

DESCRIPTION = """\
Data and tools for fairseq models with stacks in them. Training, translating and
scoring are fairseq's own commands with --user-dir $(fairseq-stack user-dir)."""

EXAMPLE = """\
example:
  fairseq-stack prepare nested-translation data/nested

fairseq-stack SUBCOMMAND --help describes a subcommand, with an example."""


def build_parser() -> argparse.ArgumentParser:
    """The parser of the command with all its subcommands."""
    parser = Parser(prog=PROGRAM, description=DESCRIPTION, epilog=EXAMPLE)
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    subparsers = parser.add_subparsers(title="subcommands", metavar="SUBCOMMAND", required=True)
    for subcommand in SUBCOMMANDS:
        subcommand.add_parser(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with ``argv`` (default: the process' arguments) and return its exit code.

    A user's mistake and a failure of the system (a full disk, a missing permission) give one line on standard
    error and exit code 2; Ctrl-C gives 130; a reader that closes the pipe, such as ``head``, 141 and no message.
    """
    try:
        try:
            args = build_parser().parse_args(argv)
            return int(args.run(args))
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # What is still buffered must not be written when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OUTPUT_CLOSED
    except (AnalysisError, PrepareError, UserError, OSError) as error:
        print(f"{PROGRAM}: error: {error}", file=sys.stderr)
        return USER_ERROR
    except KeyboardInterrupt:
        print(f"{PROGRAM}: interrupted", file=sys.stderr)
        return INTERRUPTED
