"""What the subcommands of ``fairseq-stack prepare`` share: options, running, and what they print."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path
from types import FrameType
from typing import Any

from fairseq_stack.cli.arguments import add_number
from fairseq_stack_preprocess.errors import PrepareError, flag_of
from fairseq_stack_preprocess.layout import DATA_BIN, MANIFEST_NAME, SPLITS, TEXT

SIZES = tuple(f"{split}_size" for split in SPLITS)
"""The options that :func:`add_sizes` declares."""

LIMIT_SENTENCES = "at most N sentences in each split, for a quick look"


def add_sizes(parser: argparse.ArgumentParser, options: Any) -> None:
    """Declare ``--SPLIT-size`` for each split, with the default of the ``Options`` of a corpus."""
    for split in SPLITS:
        add_number(parser, f"--{split}-size", f"sentences in {split}", getattr(options, f"{split}_size"))


def add_common(parser: argparse.ArgumentParser, *, seed: int | None = None, limit: str = LIMIT_SENTENCES) -> None:
    """Declare what every corpus has: FOLDER, ``--seed`` (unless None), ``--limit``, ``--no-binarise`` and ``--force``.

    ``limit`` says what ``--limit N`` does.
    """
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="the folder to write")
    if seed is not None:
        add_number(parser, "--seed", "random seed", seed)
    add_number(parser, "--limit", limit, least=1)
    parser.add_argument("--no-binarise", action="store_true", help="write only text, without fairseq's binary format")
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace FOLDER if it exists; the old one stays until the new one is complete",
    )


def add_pieces(parser: argparse.ArgumentParser) -> argparse._MutuallyExclusiveGroup:
    """Declare ``--pieces`` and ``--piece-model``; return their group, for other ways to split text."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--pieces", type=int, metavar="N", help="train a SentencePiece BPE model of at most N pieces on train"
    )
    group.add_argument("--piece-model", type=Path, metavar="FILE", help="split text with this SentencePiece model")
    return group


def options_from(
    args: argparse.Namespace,
    kind: Any,
    *,
    limited: Iterable[str] = (),
    **values: Any,
) -> Any:
    """The options of a corpus: ``values``, else the arguments of the command, else the defaults.

    Args:
        args: the parsed arguments.
        kind: the dataclass ``Options`` of the corpus; an argument has the name of its field.
        limited: the sizes of generated sets, which are at most ``--limit``.
        values: options that are not arguments, or are to be changed.
    """
    chosen = {field.name: value for field in fields(kind) if (value := getattr(args, field.name, None)) is not None}
    chosen |= {"binarise": not args.no_binarise, **values}
    if args.limit is not None:
        chosen |= {name: min(chosen.get(name, getattr(kind, name)), args.limit) for name in limited}
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in chosen.items()})


def refuse(args: argparse.Namespace, names: Iterable[str], reason: str) -> None:
    """Raise PrepareError, with the reason, if one of these options is given."""
    for name in names:
        if getattr(args, name) is not None and getattr(args, name) is not False:
            raise PrepareError(f"{flag_of(name)} {reason}")


def run_corpus(args: argparse.Namespace, options: Any, prepare: Callable[..., None]) -> int:
    """Write a corpus by ``prepare(options, folder, force=...)``, say what was written where; the exit code."""
    for name in ("SIGTERM", "SIGHUP"):  # so that half-made folders are removed
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _exit_on_signal)
    prepare(options, args.folder, force=args.force)
    print(f"text:     {args.folder / TEXT}")
    if options.binarise:
        print(f"fairseq:  {args.folder / DATA_BIN}")
    print(f"manifest: {args.folder / MANIFEST_NAME}")
    return 0


def _exit_on_signal(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
