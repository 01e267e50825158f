"""``fairseq-stack plot lengths NAME=RESULT...``: the cross-entropy difference by length of string."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from fairseq_stack.evaluation.cfl_comparison import Restarts, difference_by_length, price_of_length
from fairseq_stack.evaluation.cfl_result import NOTE_ON_BOUNDS, CFLResult
from fairseq_stack.plots.panels import draw_note
from fairseq_stack.plots.style import BOUND

from .figures import (
    DIFFERENCE,
    RESTARTS,
    Looks,
    add_log,
    add_output,
    add_restarts,
    draw_estimates,
    draw_panels,
    looks_of,
    read_comparison,
    require_drawable,
    scale_differences,
    title_of,
)

SUMMARY = "the cross-entropy difference by length"

DESCRIPTION = f"""\
Draw the cross-entropy difference by length of string, with a panel for each language
(Fig. 2 of DuSell and Chiang, 2024), in the order in which the results name them. The
lengths of the training strings are shaded.
The bound for a length knows the length, but a model must predict it: the dotted line
is a model that is perfect on the training lengths.
The band around a line is its bootstrap interval, or with --mean one standard
deviation. Thin lines are the other restarts. A panel names the models that it lacks
and other panels have.

{RESTARTS}"""

EXAMPLE = """\
examples:
  fairseq-stack plot lengths Tf=out/tf.json Tf+Nd=out/nd.json --output lengths.pdf
  fairseq-stack plot lengths Tf=out/tf-1-valid.json Tf=out/tf-2-valid.json \\
      Tf=out/tf-1-test.json Tf=out/tf-2-test.json --output lengths.pdf"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_restarts(parser)
    add_output(parser)
    add_log(parser)


def run(args: argparse.Namespace) -> int:
    require_drawable(args.output)
    comparison = read_comparison(args, by_length=True)
    looks = looks_of(comparison.groups)
    panels = {title_of(language): language for language in comparison.groups}

    def draw_language(axes: Any, language: str) -> None:
        models, restarts = comparison.groups[language], comparison.restarts[language]
        draw_panel(axes, models, looks, log=args.log)
        draw_others(axes, models, restarts, looks)
        draw_note(axes, notes_on(models, restarts, looks))

    draw_panels(panels, args.output, draw_language, xlabel="length", ylabel=DIFFERENCE, title=args.title)
    print(*comparison.notes, NOTE_ON_BOUNDS, args.output, sep="\n")
    return 0


def draw_panel(axes: Any, models: Mapping[str, Restarts], looks: Looks, *, log: bool) -> None:
    """The models on one language."""
    draw_estimates(axes, {model: difference_by_length(restarts) for model, restarts in models.items()}, looks)
    *_, restarts = models.values()
    draw_bounds(axes, restarts[0].result, log=log)


def draw_bounds(axes: Any, result: CFLResult, *, log: bool) -> None:
    """The training lengths, and the bounds on a language of which this is a result."""
    axes.axvspan(*result.train_lengths, color="0.92", linewidth=0, zorder=0, label="training lengths")
    if price := price_of_length(result):
        label = "lower bound, length unknown"
        axes.plot(list(price), list(price.values()), label=label, **{**BOUND, "linestyle": ":"})
    scale_differences(axes, log=log, bound="lower bound, length known")


def draw_others(axes: Any, shown: Mapping[str, Restarts], restarts: Mapping[str, Restarts], looks: Looks) -> None:
    """A thin line for each restart that is not shown."""
    thin = {"linewidth": 0.7, "marker": "", "zorder": 1.9}
    for model, runs in restarts.items():
        for run in runs:
            if run not in shown[model]:
                points = {length: scores.value for length, scores in difference_by_length([run]).items()}
                axes.plot(list(points), list(points.values()), **{**looks[model], **thin})


def notes_on(shown: Mapping[str, Restarts], restarts: Mapping[str, Restarts], looks: Looks) -> Sequence[str]:
    """Which models are the best of several restarts, and which are missing."""
    notes = [
        f"{model}: best of {len(runs)}, others thin"
        for model, runs in restarts.items()
        if len(runs) > len(shown[model])
    ]
    missing = [model for model in looks if model not in shown]
    return [*notes, f"not shown: {', '.join(missing)}"] if missing else notes
