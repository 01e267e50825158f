"""``fairseq-stack plot accuracy NAME=RESULT...``: the accuracy of transductions by length of string."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.results import require_lengths
from fairseq_stack.evaluation.transduction import TransductionResult
from fairseq_stack.plots.panels import draw_runs
from fairseq_stack.plots.style import style

from .figures import Figure, add_named, draw_panels, read_named


class Accuracy(Figure):
    """The accuracy of transductions."""

    name = "accuracy"
    summary = "the accuracy of transductions by length"
    description = """\
Draw the accuracy by length of string, with a panel for each task and network. A
RESULT is a file that fairseq-stack evaluate-transduction wrote. Several results of
one NAME on one task are trials: each is a thin line, and the thick line is their
median."""
    example = """\
example:
  fairseq-stack plot accuracy "read first"=a-1.json "read first"=a-2.json \\
      "dequeue first"=b-1.json "dequeue first"=b-2.json --output accuracy.png"""

    def add_results(self, parser: argparse.ArgumentParser) -> None:
        add_named(parser, "network")

    def draw(self, args: argparse.Namespace) -> Sequence[str]:
        trials = read_trials(args.results)
        draw_panels(trials, args.output, draw_panel, xlabel="length", ylabel="accuracy (%)", height=2.6)
        return ()


def read_trials(arguments: Sequence[str]) -> dict[str, list[TransductionResult]]:
    """The trials by task and network.

    Raises:
        UserError: a result has no name, no lengths or cannot be read, or results on one task are on different splits.
    """
    trials: dict[str, list[TransductionResult]] = {}
    splits: dict[str, tuple[str, str]] = {}
    for name, path, result in read_named(arguments, TransductionResult.read):
        require_lengths(path, result.by_length)
        first, split = splits.setdefault(result.task, (str(path), result.split))
        if result.split != split:
            raise UserError(
                f"{first} is on the split {split}, and {path} on {result.split}; give results on one of them"
            )
        trials.setdefault(f"{result.task}: {name}", []).append(result)
    return trials


def draw_panel(axes: Any, trials: Sequence[TransductionResult]) -> None:
    """The trials of one network on one task."""
    curves = [{float(scores.length): 100 * scores.accuracy.value for scores in trial.by_length} for trial in trials]
    look = style(0)
    draw_runs(axes, f"median of {len(curves)}", [*curves, median(curves)], len(curves), look)
    axes.plot([], [], label="a trial", linewidth=0.7, alpha=0.6, color=look["color"])
    axes.set(ylim=(0, 103))


def median(curves: Sequence[Mapping[float, float]]) -> dict[float, float]:
    """The median for each length that all trials have."""
    return {
        length: statistics.median(curve[length] for curve in curves)
        for length in curves[0]
        if all(length in curve for curve in curves)
    }


add_parser = Accuracy().add_parser
