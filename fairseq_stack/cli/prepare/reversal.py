"""``fairseq-stack prepare reversal``."""

from __future__ import annotations

import argparse

from fairseq_stack_preprocess.cfl import reversal
from fairseq_stack_preprocess.cfl.reversal import Options

from ..arguments import Subparsers
from ._common import SIZES, add_common, add_number, add_sizes, options_from, run_corpus

DESCRIPTION = """\
Strings w w^R: a string followed by its reversal. The length is uniform over the
even numbers between the two bounds, and w is uniform given its length. No string
is in two splits. lower_bound.json holds the cross-entropy of this distribution."""

EXAMPLE = """\
example:
  fairseq-stack prepare reversal data/reversal --min-length 10 --max-length 40"""


def add_parser(corpora: Subparsers) -> None:
    """Declare the corpus and its options."""
    parser = corpora.add_parser(
        reversal.CORPUS,
        help="generated strings w w^R (for language modelling)",
        description=DESCRIPTION,
        epilog=EXAMPLE,
    )
    add_number(parser, "--symbols", Options.symbols, "size of the alphabet")
    add_number(parser, "--min-length", Options.min_length, "minimum length, an even number")
    add_number(parser, "--max-length", Options.max_length, "maximum length, an even number")
    add_sizes(parser, Options)
    add_common(parser, seed=Options.seed)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the corpus and return the exit code."""
    return run_corpus(args, options_from(args, Options, limited=SIZES), reversal.prepare)
