"""The picture of an experiment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairseq_stack.plots.panels import draw_bars, draw_bound, draw_curves, draw_weights
from fairseq_stack.plots.style import figure

from .experiment import Experiment, model_names

if TYPE_CHECKING:
    from fairseq_stack.inspection.stack_weights import StackWeights


def draw(experiment: Experiment, reading: StackWeights, path: Path) -> None:
    """Draw the experiment into a file, whose name ends with the format (.png, .svg, ...).

    The panels: the validations on reversal, the cross-entropy difference by length, the exact match of translations
    by depth, and the stack attention in the decoder of the nd model on one sentence.
    """
    with figure(path, rows=2, columns=2, size=(9.5, 7), file_format=path.suffix[1:]) as panels:
        draw_validations(panels[0, 0], experiment)
        draw_excess_by_length(panels[0, 1], experiment)
        draw_exact_match_by_depth(panels[1, 0], experiment)
        draw_reading(panels[1, 1], reading)


def draw_validations(axes: Any, experiment: Experiment) -> None:
    """The loss on the validation strings against updates, with the least possible as a dashed line."""
    names = model_names()
    losses = {
        names[kind]: {validation.updates: validation.loss for validation in result.training.validations}
        for kind, result in experiment.reversal.items()
    }
    draw_curves(axes, losses)
    draw_bound(axes, experiment.valid_bound, "lower bound")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set(title="Language modelling of $w w^R$", xlabel="updates", ylabel="validation loss (nats a token)")
    axes.legend(frameon=False)


def draw_excess_by_length(axes: Any, experiment: Experiment) -> None:
    """The cross-entropy difference on the test strings against their length."""
    names = model_names()
    excess = {names[kind]: result.excess_by_length for kind, result in experiment.reversal.items()}
    draw_curves(axes, excess)
    draw_bound(axes, 0)
    axes.set_xticks(sorted({length for by_length in excess.values() for length in by_length}))
    axes.set(title="$w w^R$: distance to the lower bound", xlabel="length of $w w^R$", ylabel="nats a token above it")
    axes.set_ylim(bottom=min(0, axes.get_ylim()[0]))


def draw_exact_match_by_depth(axes: Any, experiment: Experiment) -> None:
    """The share of test sentences translated without a mistake against their nesting, as groups of bars."""
    percent = {
        kind: {depth: 100 * share for depth, share in result.exact_match_by_depth.items()}
        for kind, result in experiment.translation.items()
    }
    draw_bars(axes, percent)
    axes.set_yticks(range(0, 101, 20))
    axes.set_ylim(0, 118)  # room for the legend
    axes.set(title="Nested translation", xlabel="depth of nesting", ylabel="exact translations (%)")
    axes.legend(frameon=False, ncols=3, loc="upper right", bbox_to_anchor=(1, 1.02))


def draw_reading(axes: Any, reading: StackWeights) -> None:
    """Which pushed vectors each reading is made of: rows are readings, columns are pushed vectors."""
    draw_weights(axes, reading.weights.tolist(), rows=reading.inputs, columns=("bottom", *reading.inputs))
    axes.set(title="nd: what the decoder's stack attention reads", xlabel="vector pushed at", ylabel="reading after")
