"""``fairseq-stack plot WHAT``: figures and tables of results.

Begin with :mod:`.figures`: a figure reads results, draws panels, and prints its path; each module here has what is
particular to one. :mod:`.table` is text. Results are read by :mod:`fairseq_stack.evaluation`, and panels are drawn by
:mod:`fairseq_stack.plots`; no model is loaded.
"""

from __future__ import annotations

from ..arguments import Subparsers
from . import accuracy, alphabets, lengths, syntax, table, training

PLOTS = (accuracy, alphabets, lengths, syntax, table, training)

DESCRIPTION = """\
Draw training runs and results of fairseq-stack evaluate-cfl and evaluate-
transduction, or tabulate them. Only the files of results are read; no model is
loaded. The same files give the same figure, byte for byte."""

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
