"""``fairseq-stack prepare nested-translation``."""

from __future__ import annotations

import argparse

from fairseq_stack.cli.arguments import add_number
from fairseq_stack_preprocess.nested import nested_corpus as corpus
from fairseq_stack_preprocess.nested.nested_corpus import Options

from ._common import SIZES, add_common, add_sizes, options_from, run_corpus

SUMMARY = "generated pairs of sentences with nested relative clauses (for translation)"

DESCRIPTION = """\
Pairs of a German-like sentence with verb-final, centre-embedded relative clauses
and its English-like translation, from a synchronous context-free grammar. No
source sentence occurs twice. The nesting depth is uniform over 0..DEPTH;
text/*.depth and text/*.align hold the depths and the word alignments."""

EXAMPLE = """\
example:
  fairseq-stack prepare nested-translation data/nested --depth 3 --test-depth 5"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_number(parser, "--depth", "maximum nesting", Options.depth)
    parser.add_argument("--test-depth", type=int, metavar="N", help="maximum nesting depth in test (default: --depth)")
    add_sizes(parser, Options)
    add_common(parser, seed=Options.seed)


def run(args: argparse.Namespace) -> int:
    return run_corpus(args, options_from(args, Options, limited=SIZES), corpus.prepare)
