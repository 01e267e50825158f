"""``fairseq-stack prepare mt``."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from fairseq_stack.cli.arguments import add_number
from fairseq_stack_preprocess.mt import translation_corpus as corpus
from fairseq_stack_preprocess.mt.translation_options import NORMALIZATIONS, Options

from ._common import add_common, options_from, refuse, run_corpus

SUMMARY = "your own parallel text, or Europarl and WMT (for translation)"

DESCRIPTION = """\
Parallel text for translation: normalised, filtered, sampled, cut into BPE pieces
by SentencePiece, and binarised. FOLDER/text has the text before BPE; its
test.TARGET is the reference for sacrebleu. FOLDER/pieces has the pieces.

PREFIX stands for PREFIX.SOURCE and PREFIX.TARGET (one sentence per line), or for
PREFIX-src.SOURCE.sgm and PREFIX-ref.TARGET.sgm (as in WMT). Each of these files may
end in .gz."""

EXAMPLE = """\
example:
  fairseq-stack prepare mt data/multi30k --source de --target en \\
      --train raw/train --valid raw/val --test raw/test_2016_flickr"""

PIECES = ("pieces", "piece_threshold", "hard_limit", "piece_normalization", "joint")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _add_text(parser)
    _add_filters(parser)
    _add_pieces(parser)
    add_common(parser, limit="read at most N pairs of each split, for a quick look")
    add_number(parser, "--workers", "processes of fairseq-preprocess", 1, least=1)


def _add_text(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("text")
    group.add_argument("--source", metavar="LANG", required=True, help="source language, as in the names of the files")
    group.add_argument("--target", metavar="LANG", required=True, help="target language")
    group.add_argument(
        "--train", metavar="PREFIX", type=Path, nargs="+", required=True, help="training text, read in this order"
    )
    group.add_argument("--valid", metavar="PREFIX", type=Path, required=True, help="validation text")
    group.add_argument("--test", metavar="PREFIX", type=Path, required=True, help="test text")
    _add_switch(
        group, "--keep-separators", "accept U+0085, U+2028 and the like within a line; otherwise they are errors"
    )


def _add_filters(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("normalisation, filters and sample")
    group.add_argument(
        "--normalization",
        choices=NORMALIZATIONS,
        help=f"Unicode normal form of the text (default: {_default('--normalization')})",
    )
    _add_switch(group, "--moses", "also normalise punctuation, as Moses does (sacremoses)")
    _add_value(
        group, "--max-ratio", float, "X", "drop training pairs whose lengths in characters differ by a larger factor"
    )
    _add_value(group, "--max-chars", int, "N", "drop pairs in which a side has more than N characters")
    _add_switch(group, "--drop-lone-periods", "drop pairs in which a side is only a period")
    _add_switch(
        group, "--filter-all", "also filter valid and test, except by the ratio; otherwise all their pairs are kept"
    )
    _add_value(group, "--sample", int, "N", "keep a random sample of N training pairs")
    _add_value(group, "--seed", int, "N", "seed of the sample")


def _add_pieces(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("BPE pieces")
    _add_value(group, "--pieces", int, "N", "maximum number of pieces")
    _add_value(group, "--piece-threshold", int, "N", "on each side, use pieces that occur at least N times in train")
    _add_switch(group, "--hard-limit", "fail if the text is too small for that many pieces")
    _add_value(group, "--piece-normalization", str, "RULE", "normalisation within SentencePiece, e.g. nmt_nfkc")
    _add_switch(group, "--joint", "use one model and one dictionary for both languages")
    group.add_argument(
        "--like", metavar="CORPUS", type=Path, help="use the pieces and dictionaries of this corpus, for fine-tuning"
    )


# Options have no defaults here, so that the options that are given can be told apart: --like refuses some.
def _default(flag: str) -> str:
    default = getattr(Options, flag.removeprefix("--").replace("-", "_"))
    return "none" if default is None else str(default)


def _add_value(group: Any, flag: str, kind: type, metavar: str, meaning: str) -> None:
    group.add_argument(flag, type=kind, metavar=metavar, help=f"{meaning} (default: {_default(flag)})")


def _add_switch(group: Any, flag: str, meaning: str) -> None:
    on = _default(flag) == "True"
    default = "yes" if on else "no"
    group.add_argument(flag, action=argparse.BooleanOptionalAction, help=f"{meaning} (default: {default})")


def run(args: argparse.Namespace) -> int:
    if args.like is not None:
        refuse(args, PIECES, "has no effect with --like")
    options = options_from(args, Options)
    code = run_corpus(args, options, partial(corpus.prepare, workers=args.workers))
    needed = corpus.languages_for_fairseq(options)
    if needed is not None and options.binarise:
        print(f"fairseq cannot infer these languages from the file names: pass its commands {needed}")
    return code
