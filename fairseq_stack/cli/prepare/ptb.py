"""``fairseq-stack prepare ptb``."""

from __future__ import annotations

import argparse
from pathlib import Path

from fairseq_stack_preprocess.trees import ptb

from ._common import add_common, options_from, run_corpus

SUMMARY = "the Penn Treebank, with its trees (for language modelling)"

DESCRIPTION = """\
The Penn Treebank (Wall Street Journal) as Dyer et al. (2016) prepared it, from
sections 02-21, 24 and 23 of the .mrg files below RAW. Traces and function tags are
removed. Words that occur at most once in train become classes such as UNK-LC-ing.
text/ has the text and files with the words, tags, trees and spans.
The treebank itself is licensed (LDC99T42). For Mikolov's text, see prepare lm."""

EXAMPLE = """\
example:
  fairseq-stack prepare ptb data/ptb --raw treebank_3/parsed/mrg/wsj --slips"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--raw", type=Path, metavar="RAW", required=True, help="the folder with the .mrg files, at any depth"
    )
    parser.add_argument(
        "--slips",
        action="store_true",
        help="reproduce two accidents in the data of Dyer et al., which published results contain: wsj_2424 replaces "
        f"wsj_2423, and train lacks sentence {ptb.SLIP_SENTENCE}",
    )
    add_common(parser)


def run(args: argparse.Namespace) -> int:
    return run_corpus(args, options_from(args, ptb.Options), ptb.prepare)
