"""The picture of an experiment, drawn by matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairseq_stack.files import written_whole
from fairseq_stack.plots.style import SETTINGS

from .experiment import DecoderReading, Experiment

# Okabe and Ito's colours, which colour-blind readers can tell apart; the markers tell the lines apart in grey.
STYLES: dict[str, dict[str, str]] = {
    "tf": {"color": "#0072B2", "marker": "o"},
    "sup": {"color": "#E69F00", "marker": "s"},
    "nd": {"color": "#009E73", "marker": "^"},
}
NAMES = {
    "tf": "tf: no stack",
    "sup": "sup: superposition",
    "nd": "nd: nondeterministic",
}


def draw(experiment: Experiment, reading: DecoderReading, path: Path) -> None:
    """Draw the experiment into a file, whose name ends with the format (.png, .svg, ...).

    The panels: the validations on reversal, the cross-entropy difference by length, the exact match of translations
    by depth, and the stack attention in the decoder of the nd model on one sentence.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with pyplot.rc_context(SETTINGS):
        figure, axes = pyplot.subplots(2, 2, figsize=(9.5, 7), layout="constrained")
        draw_validations(axes[0, 0], experiment)
        draw_excess_by_length(axes[0, 1], experiment)
        draw_exact_match_by_depth(axes[1, 0], experiment)
        draw_reading(axes[1, 1], reading)
        try:
            with written_whole(path) as file:
                figure.savefig(file, dpi=150, format=path.suffix[1:])
        finally:
            pyplot.close(figure)


def draw_validations(axes: Any, experiment: Experiment) -> None:
    """The loss on the validation strings against updates, with the least possible as a dashed line."""
    for kind, result in experiment.reversal.items():
        validations = result.training.validations
        axes.plot(
            [validation.updates for validation in validations],
            [validation.loss for validation in validations],
            label=NAMES[kind],
            **STYLES[kind],
        )
    axes.axhline(experiment.valid_bound, color="0.3", linestyle="--", label="lower bound")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set(title="Language modelling of $w w^R$", xlabel="updates", ylabel="validation loss (nats a token)")
    axes.legend(frameon=False)


def draw_excess_by_length(axes: Any, experiment: Experiment) -> None:
    """The cross-entropy difference on the test strings against their length."""
    for kind, result in experiment.reversal.items():
        axes.plot(list(result.excess_by_length), list(result.excess_by_length.values()), **STYLES[kind])
    axes.set_xticks(list(result.excess_by_length))
    axes.axhline(0, color="0.3", linestyle="--")
    axes.set(title="$w w^R$: distance to the lower bound", xlabel="length of $w w^R$", ylabel="nats a token above it")
    axes.set_ylim(bottom=min(0, axes.get_ylim()[0]))


def draw_exact_match_by_depth(axes: Any, experiment: Experiment) -> None:
    """The share of test sentences translated without a mistake against their nesting, as groups of bars."""
    width = 0.8 / len(experiment.translation)
    for place, (kind, result) in enumerate(experiment.translation.items()):
        depths = list(result.exact_match_by_depth)
        shift = (place - (len(experiment.translation) - 1) / 2) * width
        percent = [100 * share for share in result.exact_match_by_depth.values()]
        bars = axes.bar([depth + shift for depth in depths], percent, width, color=STYLES[kind]["color"], label=kind)
        axes.bar_label(bars, fmt="%.0f", fontsize=8)
    axes.set_xticks(depths)
    axes.set_yticks(range(0, 101, 20))
    axes.set_ylim(0, 118)  # room for the legend
    axes.set(title="Nested translation", xlabel="depth of nesting", ylabel="exact translations (%)")
    axes.legend(frameon=False, ncols=3, loc="upper right", bbox_to_anchor=(1, 1.02))


def draw_reading(axes: Any, reading: DecoderReading) -> None:
    """Which pushed vectors each reading is made of: rows are readings, columns are pushed vectors."""
    image = axes.imshow(reading.weights, cmap="viridis", vmin=0, vmax=1, interpolation="nearest", aspect="auto")
    size = 8 if len(reading.inputs) <= 22 else 6
    columns = ("bottom", *reading.inputs)
    axes.set_xticks(range(len(columns)), columns, fontsize=size, rotation=90)
    axes.set_yticks(range(len(reading.inputs)), reading.inputs, fontsize=size)
    axes.tick_params(length=0)
    axes.set(title="nd: what the decoder's stack attention reads", xlabel="vector pushed at", ylabel="reading after")
    axes.figure.colorbar(image, ax=axes, label="weight")
