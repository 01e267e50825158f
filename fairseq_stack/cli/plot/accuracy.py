"""``fairseq-stack plot accuracy NAME=RESULT...``: the accuracy of transductions by length of string."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NamedTuple

from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.transduction import LEARNED, TransductionResult
from fairseq_stack.plots.panels import literal
from fairseq_stack.plots.style import style

from ..arguments import add_number
from .figures import add_named, add_output, draw_panels, read_named, require_drawable

VALID = "valid"
"""The split that says which trials have learned the task."""


class Trial(NamedTuple):
    """A result, and whether its model has learned the task, if this is known."""

    result: TransductionResult
    learned: bool | None


SUMMARY = "the accuracy of transductions by length"

DESCRIPTION = f"""\
Draw the accuracy by length of string, with a panel for each task and network. A
RESULT is a file that fairseq-stack evaluate-transduction wrote. Several results of
one NAME on one task are trials, with a line for each. Give their results on
validation data as well, in the same order, to tell the trials that learned the task
(at least {100 * LEARNED:.0f} % there) from the others by colour."""

EXAMPLE = """\
example:
  fairseq-stack plot accuracy buffered=a-1-valid.json buffered=a-2-valid.json \\
      buffered=a-1.json buffered=a-2.json --longest 24 --output accuracy.png"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_named(parser, "network")
    add_output(parser)
    add_number(parser, "--longest", "length of the longest training string, to shade", least=1)


def run(args: argparse.Namespace) -> int:
    require_drawable(args.output)
    draw_panels(
        read_trials(args.results),
        args.output,
        lambda axes, trials: draw_panel(axes, trials, args.longest),
        xlabel="length",
        ylabel="accuracy (%)",
        title=args.title,
        height=2.6,
    )
    print(args.output)
    return 0


def read_trials(arguments: Sequence[str]) -> dict[str, list[Trial]]:
    """The trials by task and network."""
    by_split: dict[bool, dict[str, list[TransductionResult]]] = {False: {}, True: {}}
    splits: dict[tuple[str, bool], tuple[str, str]] = {}
    for name, path, result in read_named(arguments, TransductionResult.read):
        is_valid = result.split == VALID
        first, split = splits.setdefault((result.task, is_valid), (str(path), result.split))
        if result.split != split:
            raise UserError(
                f"{first} is on the split {split}, and {path} on {result.split}; give results on one of them"
            )
        by_split[is_valid].setdefault(literal(f"{result.task}: {name}"), []).append(result)
    drawn, valid = by_split[False] or by_split[True], by_split[True]
    for panel in valid.keys() - drawn.keys():
        raise UserError(f"{panel}: expected a result on the split of the others, and not on validation data alone")
    return {panel: _trials(panel, results, valid.get(panel, [])) for panel, results in drawn.items()}


def _trials(panel: str, results: Sequence[TransductionResult], valid: Sequence[TransductionResult]) -> list[Trial]:
    if not valid:
        return [Trial(result, None) for result in results]
    if [result.model.checkpoint for result in results] != [result.model.checkpoint for result in valid]:
        raise UserError(f"{panel}: the results on validation data are not of the same checkpoints in the same order")
    learned = [result.overall.accuracy.value >= LEARNED for result in valid]
    return [Trial(*trial) for trial in zip(results, learned, strict=True)]


def draw_panel(axes: Any, trials: Sequence[Trial], longest: int | None) -> None:
    """The trials of one network on one task; those that have learned it lie above the others."""
    colour, share = style(0)["color"], f"{100 * LEARNED:.0f} %"
    labels = {None: "a trial", True: f"at least {share} in validation", False: f"less than {share} in validation"}
    for learned, label in labels.items():
        look = {"color": "0.6" if learned is False else colour, "zorder": 1.9 if learned is False else 2}
        for result in (trial.result for trial in trials if trial.learned is learned):
            curve = {scores.length: 100 * scores.accuracy.value for scores in result.by_length}
            axes.plot(list(curve), list(curve.values()), linewidth=0.8, alpha=0.7, label=label, **look)
    if longest is not None:
        axes.axvspan(0, longest, color="0.92", linewidth=0, zorder=0, label="training lengths")
    if trials[0].learned is not None:
        number = sum(bool(trial.learned) for trial in trials)
        axes.text(0.03, 0.05, f"{number} of {len(trials)} learned", transform=axes.transAxes, fontsize=9)
    axes.set(ylim=(0, 103))
