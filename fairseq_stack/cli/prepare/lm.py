"""``fairseq-stack prepare lm``."""

from __future__ import annotations

import argparse
from pathlib import Path

from fairseq_stack_preprocess.layout import SPLITS
from fairseq_stack_preprocess.lm import text_corpus

from ._common import add_common, add_pieces, options_from, run_corpus

SUMMARY = "your own text, one sentence per line (for language modelling)"

DESCRIPTION = """\
Your own text for language modelling, or Mikolov's text of the Penn Treebank: files
with one sentence per line, plain or gzipped. The tokens are its words, separated by
spaces, or SentencePiece's pieces with --pieces or --piece-model."""

EXAMPLE = """\
examples:
  fairseq-stack prepare lm data/lm --pieces 8000 \\
      --train train.txt --valid valid.txt --test test.txt
  fairseq-stack prepare lm data/ptb-stream --stream \\
      --train ptb.train.txt --valid ptb.valid.txt --test ptb.test.txt"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    for split in SPLITS:
        parser.add_argument(
            f"--{split}", type=Path, metavar="FILE", required=split != "test", help=f"the text of {split}"
        )
    add_pieces(parser)
    parser.add_argument(
        "--stream",
        action="store_true",
        help=f"write each split as one line, with {text_corpus.END} after each sentence",
    )
    add_common(parser)


def run(args: argparse.Namespace) -> int:
    return run_corpus(args, options_from(args, text_corpus.Options), text_corpus.prepare)
