"""``fairseq-stack prepare CORPUS FOLDER``: write a corpus as text and in fairseq's binary format."""

from __future__ import annotations

import argparse
import contextlib
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from fairseq_stack_preprocess import nested_translation, reversal
from fairseq_stack_preprocess.binarise import DATA_BIN, TEXT
from fairseq_stack_preprocess.manifest import MANIFEST_NAME
from fairseq_stack_preprocess.nested_translation import NestedTranslationOptions
from fairseq_stack_preprocess.reversal import ReversalOptions

from .arguments import Subparsers

DESCRIPTION = """\
Write a corpus: FOLDER/text, FOLDER/data-bin (for fairseq) and
FOLDER/manifest.json, which records options, counts and hashes. The same options
give the same bytes. FOLDER appears when it is complete."""

EXAMPLE = """\
example:
  fairseq-stack prepare nested-translation data/nested --depth 3 --seed 0"""

NESTED_TRANSLATION_DESCRIPTION = """\
Pairs of a German-like sentence with verb-final, centre-embedded relative clauses
and its English-like translation, from a synchronous context-free grammar. No
source sentence occurs twice. The nesting depth is uniform over 0..DEPTH;
text/*.depth and text/*.align hold the depths and the word alignments."""

NESTED_TRANSLATION_EXAMPLE = """\
example:
  fairseq-stack prepare nested-translation data/nested --depth 3 --test-depth 5"""

REVERSAL_DESCRIPTION = """\
Strings w w^R: a string followed by its reversal. The length is uniform over the
even numbers between the two bounds, and w is uniform given its length. No string
is in two splits. lower_bound.json holds the cross-entropy of this distribution."""

REVERSAL_EXAMPLE = """\
example:
  fairseq-stack prepare reversal data/reversal --min-length 10 --max-length 40"""


def add_parser(subparsers: Subparsers) -> None:
    """Declare the subcommand and one subcommand of it for each corpus."""
    parser = subparsers.add_parser(
        "prepare",
        help="write a corpus as text and in fairseq's binary format",
        description=DESCRIPTION,
        epilog=EXAMPLE,
    )
    corpora = parser.add_subparsers(title="corpora", metavar="CORPUS", required=True)
    _add_nested_translation(corpora)
    _add_reversal(corpora)


def _add_nested_translation(corpora: Subparsers) -> None:
    parser = corpora.add_parser(
        nested_translation.CORPUS,
        help="generated pairs of sentences with nested relative clauses (for translation)",
        description=NESTED_TRANSLATION_DESCRIPTION,
        epilog=NESTED_TRANSLATION_EXAMPLE,
    )
    default = NestedTranslationOptions()
    _add_number(parser, "--depth", default.depth, "greatest nesting")
    parser.add_argument("--test-depth", type=int, metavar="N", help="greatest nesting in test (default: as --depth)")
    _add_common(parser, default)
    parser.set_defaults(run=run_nested_translation)


def _add_reversal(corpora: Subparsers) -> None:
    parser = corpora.add_parser(
        reversal.CORPUS,
        help="generated strings w w^R (for language modelling)",
        description=REVERSAL_DESCRIPTION,
        epilog=REVERSAL_EXAMPLE,
    )
    default = ReversalOptions()
    _add_number(parser, "--symbols", default.symbols, "size of the alphabet")
    _add_number(parser, "--min-length", default.min_length, "least length, an even number")
    _add_number(parser, "--max-length", default.max_length, "greatest length, an even number")
    _add_common(parser, default)
    parser.set_defaults(run=run_reversal)


def _add_common(parser: argparse.ArgumentParser, default: NestedTranslationOptions | ReversalOptions) -> None:
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="the folder to write")
    for split, size in default.sizes().items():
        _add_number(parser, f"--{split}-size", size, f"sentences in {split}")
    _add_number(parser, "--seed", default.seed, "seed of the random numbers")
    parser.add_argument("--no-binarise", action="store_true", help="write text only, without fairseq's binary format")
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace FOLDER if it exists; the old one stays until the new one is complete",
    )


def _add_number(parser: argparse.ArgumentParser, flag: str, default: int, meaning: str) -> None:
    parser.add_argument(flag, type=int, metavar="N", default=default, help=f"{meaning} (default: {default})")


def run_nested_translation(args: argparse.Namespace) -> int:
    """Write the corpus ``nested-translation``."""
    options = NestedTranslationOptions(
        depth=args.depth,
        test_depth=args.test_depth,
        train_size=args.train_size,
        valid_size=args.valid_size,
        test_size=args.test_size,
        seed=args.seed,
        binarise=not args.no_binarise,
    )
    with _stop_signals_raise():
        nested_translation.prepare(options, args.folder, force=args.force)
    _report(args.folder, options.binarise)
    return 0


def run_reversal(args: argparse.Namespace) -> int:
    """Write the corpus ``reversal``."""
    options = ReversalOptions(
        symbols=args.symbols,
        min_length=args.min_length,
        max_length=args.max_length,
        train_size=args.train_size,
        valid_size=args.valid_size,
        test_size=args.test_size,
        seed=args.seed,
        binarise=not args.no_binarise,
    )
    with _stop_signals_raise():
        reversal.prepare(options, args.folder, force=args.force)
    _report(args.folder, options.binarise)
    return 0


def _report(folder: Path, binarised: bool) -> None:
    """Say on standard output what was written where."""
    print(f"text:     {folder / TEXT}")
    if binarised:
        print(f"fairseq:  {folder / DATA_BIN}")
    print(f"manifest: {folder / MANIFEST_NAME}")


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
