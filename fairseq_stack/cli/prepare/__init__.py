"""``fairseq-stack prepare CORPUS FOLDER``: write a corpus as text and in fairseq's binary format.

Each corpus is a module of this package, as a subcommand is of :mod:`fairseq_stack.cli`. :mod:`._common` has what they
share.
"""

from __future__ import annotations

import argparse

from ..arguments import add_subcommand
from . import cfl, classification, lm, mt, nested_translation, ptb, transduction, transformations, treebank

CORPORA = (cfl, classification, lm, mt, nested_translation, ptb, transduction, transformations, treebank)

SUMMARY = "write a corpus as text and in fairseq's binary format"

DESCRIPTION = """\
Write a corpus: FOLDER/text, FOLDER/data-bin (for fairseq) and
FOLDER/manifest.json, which records options, counts and hashes. The same options
give the same bytes. FOLDER appears only when it is complete."""

EXAMPLE = """\
example:
  fairseq-stack prepare nested-translation data/nested --depth 3 --seed 0"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    corpora = parser.add_subparsers(title="corpora", metavar="CORPUS", required=True)
    for corpus in CORPORA:
        add_subcommand(corpora, corpus)
