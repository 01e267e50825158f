"""``fairseq-stack prepare treebank``."""

from __future__ import annotations

import argparse
from pathlib import Path

from fairseq_stack_preprocess.layout import SPLITS
from fairseq_stack_preprocess.trees import treebank

from ._common import add_common, add_pieces, options_from, run_corpus

SUMMARY = "bracketed trees, with their spans (for language modelling)"

DESCRIPTION = """\
Phrase-structure trees in brackets, for language models that learn from trees. The
trees come from folders with .mrg files, or from files, plain or gzipped, with one
tree per line or indented as in .mrg files. Traces and function tags are removed.
text/*.spans and text/*.attach hold the trees, made binary and without unary nodes,
over the tokens that fairseq reads: words; SentencePiece's pieces with --pieces or
--piece-model; or GPT-2's pieces with --gpt2."""

EXAMPLE = """\
examples:
  fairseq-stack prepare treebank data/trees --train a.mrg --valid b.mrg --test c.mrg
  fairseq-stack prepare treebank data/pieces --pieces 8000 \\
      --train train.txt.gz --valid valid.txt.gz --test test.txt.gz"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    for split in SPLITS:
        parser.add_argument(
            f"--{split}",
            type=Path,
            nargs="+",
            metavar="PATH",
            required=True,
            help=f"files or folders with the trees of {split}",
        )
    parser.add_argument(
        "--rare-words",
        choices=treebank.RARE_WORDS,
        help="replace words that occur at most once in train with classes such as UNK-LC-ing, or keep them (default: "
        "classes)",
    )
    add_pieces(parser).add_argument(
        "--gpt2", type=Path, metavar="DIR", help="split words as the tokenizer of a GPT-2 in this folder does"
    )
    add_common(parser)


def run(args: argparse.Namespace) -> int:
    return run_corpus(args, options_from(args, treebank.Options), treebank.prepare)
