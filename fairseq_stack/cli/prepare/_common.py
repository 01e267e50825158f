"""What the subcommands of ``fairseq-stack prepare`` share: options, running, and what they print."""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar, Protocol, TypeVar

from fairseq_stack_preprocess.errors import PrepareError, flag_of, require_at_least
from fairseq_stack_preprocess.layout import DATA_BIN, MANIFEST_NAME, SPLITS, TEXT
from fairseq_stack_preprocess.text.output import check_target

SIZES = tuple(f"{split}_size" for split in SPLITS)
"""The options that :func:`add_sizes` declares."""

LIMIT_SENTENCES = "at most N sentences in each split, for a quick look"


class Options(Protocol):
    """The ``Options`` dataclass of a corpus."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def binarise(self) -> bool:
        """Whether fairseq's binary format is written as well."""


AnyOptions = TypeVar("AnyOptions", bound=Options)


def add_number(parser: argparse._ActionsContainer, flag: str, default: int, meaning: str) -> None:
    """Declare an option whose value is an integer, with its default in the help."""
    parser.add_argument(flag, type=int, metavar="N", default=default, help=f"{meaning} (default: {default})")


def add_sizes(parser: argparse.ArgumentParser, options: type[Options]) -> None:
    """Declare ``--SPLIT-size`` for each split, with the default of the corpus."""
    for split in SPLITS:
        add_number(parser, f"--{split}-size", getattr(options, f"{split}_size"), f"sentences in {split}")


def add_common(parser: argparse.ArgumentParser, *, seed: int | None = None, limit: str = LIMIT_SENTENCES) -> None:
    """Declare what every corpus has: FOLDER, ``--seed`` (unless None), ``--limit``, ``--no-binarise``, ``--dry-run``
    and ``--force``.

    ``limit`` says what ``--limit N`` does.
    """
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="the folder to write")
    if seed is not None:
        add_number(parser, "--seed", seed, "random seed")
    parser.add_argument("--limit", type=int, metavar="N", help=limit)
    parser.add_argument("--no-binarise", action="store_true", help="write only text, without fairseq's binary format")
    parser.add_argument("--dry-run", action="store_true", help="check, print what would be done, and write nothing")
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace FOLDER if it exists; the old one stays until the new one is complete",
    )


def options_from(
    args: argparse.Namespace,
    kind: type[AnyOptions],
    *,
    limited: Iterable[str] = (),
    preset: Mapping[str, Any] | None = None,
    **values: Any,
) -> AnyOptions:
    """The options of a corpus: ``values``, else the arguments of the command, else ``preset``, else the defaults.

    Args:
        args: the parsed arguments.
        kind: the ``Options`` of the corpus; an argument has the name of its field.
        limited: the sizes of generated sets, which are at most ``--limit``.
        preset: the values of a published set-up.
        values: options that are not arguments, or are to be changed.

    Raises:
        PrepareError: an option is out of range.
    """
    chosen = {field.name: value for field in fields(kind) if (value := getattr(args, field.name, None)) is not None}
    chosen = {**(preset or {}), **chosen, "binarise": not args.no_binarise, **values}
    require_at_least("--limit", args.limit, 1)
    if args.limit is not None:
        chosen |= {name: min(chosen.get(name, getattr(kind, name)), args.limit) for name in limited}
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in chosen.items()})


def refuse(args: argparse.Namespace, names: Iterable[str], reason: str) -> None:
    """Raise PrepareError, with the reason, if one of these options is given."""
    for name in names:
        if getattr(args, name) not in (None, False):
            raise PrepareError(f"{flag_of(name)} {reason}")


def run_corpus(
    args: argparse.Namespace, options: Options, prepare: Callable[..., None], *, plan: Iterable[str] = ()
) -> int:
    """Write a corpus by ``prepare(options, folder, force=...)``, or with ``--dry-run`` say what would be done.

    Args:
        args: the parsed arguments, including the arguments of :func:`add_common`.
        options: the corpus' options; shown by a dry run.
        prepare: the function that writes the folder.
        plan: further lines for a dry run to print: what is read, counted or found out without writing. They
            are not iterated over otherwise.

    Returns:
        The exit code.

    Raises:
        PrepareError: the folder cannot be written, or ``prepare`` or ``plan`` raised it.
    """
    if args.dry_run:
        check_target(args.folder, force=args.force)
        _say_plan(args, options, list(plan))
        return 0
    with _stop_signals_raise():
        prepare(options, args.folder, force=args.force)
    _report(args.folder, options.binarise)
    return 0


def _say_plan(args: argparse.Namespace, options: Options, plan: Iterable[str]) -> None:
    """Say on standard output what a run without ``--dry-run`` would do."""
    print("options:")
    for name, value in asdict(options).items():
        print(f"  {name}: {json.dumps(value, ensure_ascii=False, default=str)}")
    for line in plan:
        print(line)
    print("nothing is written (--dry-run); a run would write:")
    if args.force and args.folder.exists():
        print(f"  (in place of the present {args.folder})")
    _report(args.folder, options.binarise, indent="  ")


def _report(folder: Path, binarised: bool, indent: str = "") -> None:
    """Say on standard output what was written where."""
    print(f"{indent}text:     {folder / TEXT}")
    if binarised:
        print(f"{indent}fairseq:  {folder / DATA_BIN}")
    print(f"{indent}manifest: {folder / MANIFEST_NAME}")


@contextlib.contextmanager
def _stop_signals_raise() -> Iterator[None]:
    """Make SIGTERM and SIGHUP raise SystemExit within the block, so that half-made folders are removed.

    Python lets only the main thread set signal handlers; elsewhere this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    old = {number: signal.signal(number, _exit_on_signal) for number in numbers}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def _exit_on_signal(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
