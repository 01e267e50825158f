"""``fairseq-stack prepare lm``."""

from __future__ import annotations

import argparse
from pathlib import Path

from fairseq_stack_preprocess.layout import SPLITS
from fairseq_stack_preprocess.lm import text_corpus
from fairseq_stack_preprocess.lm.text_corpus import Options

from ..arguments import Subparsers
from ._common import add_common, add_pieces, options_from, run_corpus

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


def add_parser(corpora: Subparsers) -> None:
    """Declare the corpus and its options."""
    parser = corpora.add_parser(
        text_corpus.CORPUS,
        help="your own text, one sentence per line (for language modelling)",
        description=DESCRIPTION,
        epilog=EXAMPLE,
    )
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
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the corpus and return the exit code."""
    options = options_from(args, Options)
    return run_corpus(args, options, text_corpus.prepare)
