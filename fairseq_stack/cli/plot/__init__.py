"""``fairseq-stack plot WHAT``: figures and tables of results.

Each is a module of this package with ``add_parser(plots)``, which declares its options and sets ``run`` as the default
of that name, and the function that ``run`` names. :mod:`.figures` has what they share.
"""

from __future__ import annotations

from ..arguments import Subparsers
from . import accuracy, alphabets, lengths, syntax, table, training

PLOTS = (accuracy, alphabets, lengths, syntax, table, training)

DESCRIPTION = """\
Draw training runs and results of fairseq-stack evaluate-cfl and evaluate-
transduction, or tabulate them. Only the files of results are read; no model is
loaded. The same files give the same figure, to the byte."""

EXAMPLE = """\
example:
  fairseq-stack plot lengths Tf=out/tf.json Tf+Nd=out/nd.json --output lengths.pdf

fairseq-stack plot WHAT --help describes each, with an example."""


def add_parser(subparsers: Subparsers) -> None:
    """Declare the subcommand and one subcommand of it for each kind of figure or table."""
    parser = subparsers.add_parser("plot", help="draw and tabulate results", description=DESCRIPTION, epilog=EXAMPLE)
    plots = parser.add_subparsers(title="figures and tables", metavar="WHAT", required=True)
    for plot in PLOTS:
        plot.add_parser(plots)
