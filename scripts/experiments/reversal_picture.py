"""LSTMs with and without stacks on ww^R by length, and the best run of a stack on one string.

python scripts/experiments/reversal_picture.py CHECKPOINT PICTURE

CHECKPOINT is an LSTM+Nd that ``cfl_2024.smk`` has trained with ``languages=unmarked-reversal protocol=paper``. The
curves are those of docs/results/cfl_2024: all runs by this protocol, the test strings by length.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from fairseq_stack.cli.plot.lengths import draw_bounds
from fairseq_stack.evaluation.cfl_result import CFLResult
from fairseq_stack.hub.interface import load
from fairseq_stack.inspection.pictures import draw_run
from fairseq_stack.inspection.stacks import inspect_stacks
from fairseq_stack.modules import InspectedAutomaton
from fairseq_stack.plots.style import figure, styles_of

RESULTS = Path(__file__).resolve().parents[2] / "docs/results/cfl_2024/unmarked-reversal"
MODELS = {"LSTM": "lstm", "LSTM+Sup": "lstm-sup", "LSTM+Nd": "lstm-nd"}
NEAR = 0.01  # nats per symbol above the bound
W = ["0", "1", "1", "0", "0", "1", "1", "0", "1", "0", "1", "1", "1", "0", "1", "1", "1", "1", "1", "0"]


def draw_curves(axes: Any) -> None:
    """A line for each run: what it is above the lower bound, by length."""
    for model, look in styles_of(MODELS).items():
        runs = [CFLResult.read(path) for path in sorted(RESULTS.glob(f"{MODELS[model]}-seed-*-paper/test.json"))]
        for run in runs:
            points = {scores.length: scores.difference.value for scores in run.by_length}
            label = f"{model}, {len(runs)} {'seeds' if len(runs) > 1 else 'seed'}" if run is runs[0] else ""
            axes.plot(list(points), list(points.values()), label=label, markevery=5, markersize=3, **look)
    draw_bounds(axes, runs[0], log=False)
    axes.set(xlabel="length", ylabel="nats per symbol above the lower bound", ylim=(-0.02, 0.46))
    validated = [
        CFLResult.read(path).overall.difference.value for path in RESULTS.glob("lstm-nd-seed-*-paper/valid.json")
    ]
    near = sum(difference <= NEAR for difference in validated)
    axes.set_title(f"$ww^R$: LSTM+Nd comes near\nthe bound in {near} of {len(validated)} runs", loc="left")
    axes.legend(
        facecolor="white", framealpha=1, edgecolor="none", fontsize=8, loc="upper center"
    )  # on the shaded lengths


def draw_best_run(axes: Any, stack: InspectedAutomaton) -> None:
    """The best run of the stack, and the middle of the string."""
    draw_run(axes, stack, 0, with_steps=False)
    share = 100 * stack.shares()[0]
    axes.set_title(f"$ww^R$: push to the middle, then pop\n(the best run of LSTM+Nd: {share:.2g} % of all)", loc="left")
    axes.axvline(len(W) + 0.5, color="0.3", linestyle="--", linewidth=1, zorder=3)
    axes.text(len(W) + 0.8, axes.get_ylim()[1], "middle of the string", va="top", fontsize=9)
    axes.legend(handles=axes.get_legend().legend_handles, frameon=False, fontsize=8, loc="upper left")


def main(checkpoint: str, picture: str) -> None:
    """Draw the picture."""
    (stack,) = inspect_stacks(load(checkpoint), " ".join([*W, *reversed(W)]))
    assert isinstance(stack, InspectedAutomaton)
    with figure(Path(picture), 1, 2, (10.5, 4), widths=(1, 1.7)) as panels:
        draw_curves(panels[0, 0])
        draw_best_run(panels[0, 1], stack)


if __name__ == "__main__":
    main(*sys.argv[1:])
