"""``fairseq-stack plot lengths NAME=RESULT...``: the cross-entropy difference by length of string."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairseq_stack.plots.panels import (
    draw_bound,
    draw_intervals,
    draw_legend,
    literal,
    scale_logarithmically,
    shade,
)
from fairseq_stack.plots.style import figure, grid, styles_of

from ..arguments import Subparsers
from ._common import DIFFERENCE, RESTARTS, add_figure, add_log, add_results, check_figure, read_comparison

if TYPE_CHECKING:
    from fairseq_stack.evaluation.cfl_comparison import Comparison, Restarts

DESCRIPTION = f"""\
Draw the cross-entropy difference by length of string, with a panel for each language
(Fig. 2 of DuSell and Chiang, 2024). The lengths of the training strings are shaded.
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
    check_figure(args.output)
    comparison = read_comparison(args, by_length=True)
    draw(comparison, args.output, log=args.log)
    if comparison.note:
        print(comparison.note)
    print(args.output)
    return 0


def draw(comparison: Comparison, path: Path, *, log: bool) -> None:
    """Draw a panel for each language."""
    number = len(comparison.groups)
    rows, columns = grid(number)
    looks = styles_of(model for models in comparison.groups.values() for model in models)
    with figure(path, rows, columns, (max(3.6 * columns, 4.5), 3 * rows), path.suffix[1:]) as panels:
        for axes, (language, models) in zip(panels.flat, comparison.groups.items(), strict=False):
            draw_panel(axes, models, looks, log=log)
            axes.set(title=literal(language), xlabel="length")
        for axes in panels[:, 0]:
            axes.set_ylabel(DIFFERENCE)
        draw_legend(panels, number)


def draw_panel(axes: Any, models: dict[str, Restarts], looks: dict[str, dict[str, str]], *, log: bool) -> None:
    """The models on one language."""
    from fairseq_stack.evaluation.cfl_comparison import difference_by_length

    for model, restarts in models.items():
        points = {
            length: (found.value, found.low, found.high) for length, found in difference_by_length(restarts).items()
        }
        draw_intervals(axes, model, points, looks[model])
    shade(axes, *restarts[0].result.train_lengths, "training lengths")
    if log:
        scale_logarithmically(axes)
    else:
        draw_bound(axes, 0)
