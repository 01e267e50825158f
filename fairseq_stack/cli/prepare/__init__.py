"""``fairseq-stack prepare CORPUS FOLDER``: write a corpus as text and in fairseq's binary format.

Each corpus is a module of this package with ``add_parser(corpora)``, which declares its options and sets
``run`` as the default of that name, and the function that ``run`` names. :mod:`._common` has what corpora share.
"""

from __future__ import annotations

from ..arguments import Subparsers
from . import cfl, classification, lm, mt, nested_translation, ptb, transduction, transformations, treebank

CORPORA = (cfl, classification, lm, mt, nested_translation, ptb, transduction, transformations, treebank)

DESCRIPTION = """\
Write a corpus: FOLDER/text, FOLDER/data-bin (for fairseq) and
FOLDER/manifest.json, which records options, counts and hashes. The same options
give the same bytes. FOLDER appears only when it is complete."""

EXAMPLE = """\
example:
  fairseq-stack prepare nested-translation data/nested --depth 3 --seed 0"""


def add_parser(subparsers: Subparsers) -> None:
    """Declare the subcommand and one subcommand of it for each corpus."""
    parser = subparsers.add_parser(
        "prepare",
        help="write a corpus as text and in fairseq's binary format",
        description=DESCRIPTION,
        epilog=EXAMPLE,
    )
    corpora = parser.add_subparsers(title="corpora", metavar="CORPUS", required=True)
    for corpus in CORPORA:
        corpus.add_parser(corpora)
