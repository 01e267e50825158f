"""``fairseq-stack plot WHAT``: figures and tables of results.

Each figure is a module of this package, as a subcommand is of :mod:`fairseq_stack.cli`: it reads results, draws panels,
and prints its path. :mod:`.figures` has what they share; :mod:`.table` is text. Results are read by
:mod:`fairseq_stack.evaluation`, and panels are drawn by :mod:`fairseq_stack.plots`; no model is loaded.
"""

from __future__ import annotations

import argparse

from ..arguments import add_subcommand
from . import accuracy, alphabets, lengths, syntax, table, training

PLOTS = (accuracy, alphabets, lengths, syntax, table, training)

SUMMARY = "draw and tabulate results"

DESCRIPTION = """\
Draw training runs and results of evaluations, or tabulate them. Only the files
of results are read; no model is loaded. The same files give the same figure,
byte for byte."""

EXAMPLE = """\
example:
  fairseq-stack plot lengths Tf=out/tf.json Tf+Nd=out/nd.json --output lengths.pdf

fairseq-stack plot WHAT --help describes each, with an example."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    plots = parser.add_subparsers(title="figures and tables", metavar="WHAT", required=True)
    for plot in PLOTS:
        add_subcommand(plots, plot)
