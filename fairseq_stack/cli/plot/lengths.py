"""``fairseq-stack plot lengths NAME=RESULT...``: the cross-entropy difference by length of string."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from fairseq_stack.plots.panels import draw_bound, draw_intervals, draw_price, scale_logarithmically, shade

from ..arguments import Subparsers
from ._common import DIFFERENCE, RESTARTS, add_figure, add_log, add_results, check_figure, draw_panels, read_comparison

if TYPE_CHECKING:
    from fairseq_stack.evaluation.cfl_comparison import Restarts

DESCRIPTION = f"""\
Draw the cross-entropy difference by length of string, with a panel for each language
(Fig. 2 of DuSell and Chiang, 2024). The lengths of the training strings are shaded.
The bound of a length knows the length. A model predicts it: the dotted line is where
a model that is perfect on the training lengths would be.
The band around a line is its bootstrap interval, or with --mean one standard
deviation.

{RESTARTS}"""

EXAMPLE = """\
examples:
  fairseq-stack plot lengths Tf=out/tf.json Tf+Nd=out/nd.json --output lengths.pdf
  fairseq-stack plot lengths Tf=out/tf-1-valid.json Tf=out/tf-2-valid.json \\
      Tf=out/tf-1-test.json Tf=out/tf-2-test.json --output lengths.pdf"""


def add_parser(plots: Subparsers) -> None:
    """Declare the subcommand."""
    parser = plots.add_parser(
        "lengths", help="the cross-entropy difference by length", description=DESCRIPTION, epilog=EXAMPLE
    )
    add_results(parser)
    add_figure(parser)
    add_log(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Draw the figure and print its path."""
    from fairseq_stack.evaluation.cfl_result import NOTE_ON_BOUNDS

    check_figure(args.output)
    comparison = read_comparison(args, by_length=True)
    draw_panels(comparison.groups, args.output, partial(draw_panel, log=args.log), xlabel="length", ylabel=DIFFERENCE)
    if comparison.note:
        print(comparison.note)
    print(NOTE_ON_BOUNDS)
    print(args.output)
    return 0


def draw_panel(axes: Any, models: Mapping[str, Restarts], looks: Mapping[str, Mapping[str, str]], *, log: bool) -> None:
    """The models on one language."""
    from fairseq_stack.evaluation.cfl_comparison import difference_by_length, price_of_length

    for model, restarts in models.items():
        points = {
            length: (found.value, found.low, found.high) for length, found in difference_by_length(restarts).items()
        }
        draw_intervals(axes, model, points, looks[model])
    result = restarts[0].result
    shade(axes, *result.train_lengths, "training lengths")
    if price := price_of_length(result):
        draw_price(axes, price, "price of the length")
    if log:
        scale_logarithmically(axes)
    else:
        draw_bound(axes, 0)
