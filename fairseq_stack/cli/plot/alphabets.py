"""``fairseq-stack plot alphabets NAME=RESULT...``: the cross-entropy difference by size of the alphabet."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from fairseq_stack.plots.panels import draw_bound, draw_intervals, scale_logarithmically

from ..arguments import Subparsers
from ._common import DIFFERENCE, RESTARTS, add_figure, add_log, add_results, check_figure, draw_panels, read_comparison

if TYPE_CHECKING:
    from fairseq_stack.evaluation.cfl_result import Estimate

DESCRIPTION = f"""\
Draw the cross-entropy difference on languages with alphabets of several sizes
(--symbol-types or --bracket-types of fairseq-stack prepare cfl), as in DuSell and
Chiang (2023), with a panel for each language. The band around a line is its
bootstrap interval, or with --mean one standard deviation.

{RESTARTS}"""

EXAMPLE = """\
example:
  fairseq-stack plot alphabets LSTM=out/dyck-2.json LSTM=out/dyck-40.json \\
      LSTM+Nd=out/dyck-2-nd.json LSTM+Nd=out/dyck-40-nd.json --output alphabets.pdf"""


def add_parser(plots: Subparsers) -> None:
    """Declare the subcommand."""
    parser = plots.add_parser(
        "alphabets",
        help="the cross-entropy difference by size of the alphabet",
        description=DESCRIPTION,
        epilog=EXAMPLE,
    )
    add_results(parser)
    add_figure(parser)
    add_log(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Draw the figure and print its path."""
    from fairseq_stack.evaluation.cfl_comparison import difference_by_alphabet

    check_figure(args.output)
    comparison = read_comparison(args)
    differences = difference_by_alphabet(comparison)
    draw_panels(
        differences,
        args.output,
        partial(draw_panel, log=args.log),
        xlabel="symbols, or kinds of brackets",
        ylabel=DIFFERENCE,
    )
    if comparison.note:
        print(comparison.note)
    print(args.output)
    return 0


def draw_panel(
    axes: Any, models: Mapping[str, Mapping[int, Estimate]], looks: Mapping[str, Mapping[str, str]], *, log: bool
) -> None:
    """The models on one language."""
    for model, estimates in models.items():
        points = {size: (found.value, found.low, found.high) for size, found in estimates.items()}
        draw_intervals(axes, model, points, looks[model])
    if log:
        scale_logarithmically(axes)
    else:
        draw_bound(axes, 0)
