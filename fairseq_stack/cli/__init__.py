"""The command ``fairseq-stack``: what fairseq's own commands lack.

Each subcommand is a module of this package with its name: ``SUMMARY`` is its line in the help of the command,
``DESCRIPTION`` and ``EXAMPLE`` are the beginning and the end of its own help, ``add_arguments(parser)`` declares its
options, and ``run(args)`` takes the parsed ones and returns the exit code. :data:`SUBCOMMANDS` lists them; only the one
that is asked for is imported. A mistake of the user is a UserError, wherever it is found, and the command ends with its
line.

What subcommands share is in :mod:`.arguments` (the parser), :mod:`.checkpoint` (how a model is named and loaded),
:mod:`.evaluation` (the commands ``evaluate-...``), :mod:`.sentence_options` (how sentences of English are scored) and
:mod:`.plot.figures` (the figures of ``plot``). ``prepare``, ``inspect`` and ``plot`` are packages.

This package may import everything, and nothing imports it. Modules import what takes long to load (torch, fairseq)
inside functions, so that the command starts at once and mistakes in arguments are said at once. The scores themselves
are computed in :mod:`fairseq_stack.evaluation`, and figures are drawn in :mod:`fairseq_stack.plots`.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import re
import sys
from collections.abc import Sequence

from fairseq_stack_preprocess.errors import PrepareError

from .. import __version__
from ..errors import HOW_TO_INSTALL, INTERRUPTED, USER_ERROR, UserError, missing_package
from .arguments import Parser, add_subcommand, in_one_line

PROGRAM = "fairseq-stack"

SUBCOMMANDS = (
    "average",
    "doctor",
    "evaluate-blimp",
    "evaluate-cfl",
    "evaluate-classification",
    "evaluate-pushdown",
    "evaluate-syntaxgym",
    "evaluate-transduction",
    "evaluate-transformations",
    "export",
    "inspect",
    "parse-prompts",
    "plot",
    "prepare",
    "surprisal",
    "user-dir",
)
"""Their names; the module of each has its name with underscores."""

_OUT_OF_MEMORY = re.compile("can't allocate memory|out of memory")
"""In PyTorch's errors."""

OUTPUT_CLOSED = 141
"""The exit code that a shell reports for a program that SIGPIPE ends, as ``| head`` does."""

DESCRIPTION = """\
Data and tools for fairseq models with stacks in them. To train, translate and score,
use fairseq's own commands with --user-dir $(fairseq-stack user-dir)."""

EXAMPLE = """\
example:
  fairseq-stack prepare nested-translation data/nested

fairseq-stack SUBCOMMAND --help describes a subcommand, with an example."""


def build_parser(names: Sequence[str] = SUBCOMMANDS) -> argparse.ArgumentParser:
    """The parser of the command with these subcommands."""
    parser = Parser(prog=PROGRAM, description=DESCRIPTION, epilog=EXAMPLE)
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    subparsers = parser.add_subparsers(title="subcommands", metavar="SUBCOMMAND", required=True)
    for name in names:
        add_subcommand(subparsers, importlib.import_module(f".{name.replace('-', '_')}", __name__))
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with ``argv`` (default: the process' arguments) and return its exit code.

    A user's mistake, a missing package and a failure of the system (a full disk, a missing permission) give one line
    on standard error and exit code 2; Ctrl-C gives 130; a reader that closes the pipe, such as ``head``, 141 and no
    message.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # file names need not be text
    try:
        try:
            return _run(argv)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
        return OUTPUT_CLOSED
    except OSError as error:  # what was printed cannot be written
        _discard_output()
        return _fail(f"cannot write to standard output: {error.strerror}")


def _run(argv: Sequence[str] | None) -> int:
    try:
        words = sys.argv[1:] if argv is None else argv
        # Importing one subcommand takes a third of the time of importing all.
        chosen = [name for name in SUBCOMMANDS if [name] == words[:1]]
        args = build_parser(chosen or SUBCOMMANDS).parse_args(words)
        return int(args.run(args))
    except (PrepareError, UserError) as error:
        return _fail(str(error))
    except (AssertionError, ValueError) as error:
        from fairseq_stack.compat.messages import message_of

        message = message_of(error)
        if message is None:
            raise
        return _fail(message)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in HOW_TO_INSTALL:
            raise
        return _fail(str(missing_package(package)))
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is None:
            sys.stdout.flush()  # fails again if printing caused the error
            return _fail(error.strerror or str(error))
        return _fail(f"{os.fsdecode(error.filename)}: {error.strerror}")
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not _OUT_OF_MEMORY.search(str(error)):
            raise
        return _fail("this machine does not have enough memory for that; choose smaller batches or sizes")
    except KeyboardInterrupt:
        print(f"{PROGRAM}: interrupted", file=sys.stderr)
        return INTERRUPTED


def _fail(message: str) -> int:
    print(f"{PROGRAM}: error: {in_one_line(message)}", file=sys.stderr)
    return USER_ERROR


def _discard_output() -> None:
    """Discard buffered output: writing it when Python ends would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
