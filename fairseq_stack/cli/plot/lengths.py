"""``fairseq-stack plot lengths NAME=RESULT...``: the cross-entropy difference by length of string."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from fairseq_stack.evaluation.cfl_comparison import Restarts, difference_by_length, price_of_length
from fairseq_stack.evaluation.cfl_result import NOTE_ON_BOUNDS
from fairseq_stack.plots.style import BOUND

from .figures import (
    DIFFERENCE,
    RESTARTS,
    Figure,
    Looks,
    add_log,
    add_restarts,
    draw_estimates,
    draw_panels,
    looks_of,
    read_comparison,
    scale_differences,
)


class Lengths(Figure):
    """The cross-entropy difference by length."""

    name = "lengths"
    summary = "the cross-entropy difference by length"
    description = f"""\
Draw the cross-entropy difference by length of string, with a panel for each language
(Fig. 2 of DuSell and Chiang, 2024). The lengths of the training strings are shaded.
The bound for a length knows the length, but a model must predict it: the dotted line
is a model that is perfect on the training lengths.
The band around a line is its bootstrap interval, or with --mean one standard
deviation.

{RESTARTS}"""
    example = """\
examples:
  fairseq-stack plot lengths Tf=out/tf.json Tf+Nd=out/nd.json --output lengths.pdf
  fairseq-stack plot lengths Tf=out/tf-1-valid.json Tf=out/tf-2-valid.json \\
      Tf=out/tf-1-test.json Tf=out/tf-2-test.json --output lengths.pdf"""

    add_results = staticmethod(add_restarts)
    add_options = staticmethod(add_log)

    def draw(self, args: argparse.Namespace) -> Sequence[str]:
        comparison = read_comparison(args, by_length=True)
        looks = looks_of(comparison.groups)
        draw_panels(
            comparison.groups,
            args.output,
            lambda axes, models: draw_panel(axes, models, looks, log=args.log),
            xlabel="length",
            ylabel=DIFFERENCE,
        )
        return [*comparison.notes, NOTE_ON_BOUNDS]


def draw_panel(axes: Any, models: Mapping[str, Restarts], looks: Looks, *, log: bool) -> None:
    """The models on one language."""
    draw_estimates(axes, {model: difference_by_length(restarts) for model, restarts in models.items()}, looks)
    *_, restarts = models.values()
    result = restarts[0].result
    axes.axvspan(*result.train_lengths, color="0.92", linewidth=0, zorder=0, label="training lengths")
    if price := price_of_length(result):
        axes.plot(list(price), list(price.values()), label="price of the length", **{**BOUND, "linestyle": ":"})
    scale_differences(axes, log=log)


add_parser = Lengths().add_parser
