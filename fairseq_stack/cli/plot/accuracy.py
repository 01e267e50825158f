"""``fairseq-stack plot accuracy NAME=RESULT...``: the accuracy of transductions by length of string."""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fairseq_stack.errors import UserError
from fairseq_stack.plots.panels import draw_intervals

from ..arguments import Subparsers
from ._common import add_figure, check_figure, draw_panels, named

if TYPE_CHECKING:
    from fairseq_stack.evaluation.transduction import TransductionResult

DESCRIPTION = """\
Draw the accuracy by length of string, with a panel for each task. A RESULT is a
file that fairseq-stack evaluate-transduction wrote. Several results of one NAME on
one task are trials: the line is their median, and the band around it reaches from
the least to the greatest accuracy."""

EXAMPLE = """\
example:
  fairseq-stack plot accuracy "read first"=a-1.json "read first"=a-2.json \\
      "dequeue first"=b-1.json "dequeue first"=b-2.json --output accuracy.png"""

Trials = list["TransductionResult"]


def add_parser(plots: Subparsers) -> None:
    """Declare the subcommand."""
    parser = plots.add_parser(
        "accuracy", help="the accuracy of transductions by length", description=DESCRIPTION, epilog=EXAMPLE
    )
    parser.add_argument("results", metavar="NAME=RESULT", nargs="+", help="a result, and the name of the network")
    add_figure(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Draw the figure and print its path."""
    check_figure(args.output)
    panels = read_trials(args.results)
    draw_panels(panels, args.output, draw_panel, xlabel="length", ylabel="accuracy (%)")
    print(args.output)
    return 0


def read_trials(arguments: Sequence[str]) -> dict[str, dict[str, Trials]]:
    """The trials by task and network.

    Raises:
        UserError: a result has no name or cannot be read, or results on one task are on different splits.
    """
    from fairseq_stack.evaluation.transduction import read_transduction_result

    panels: dict[str, dict[str, Trials]] = {}
    splits: dict[str, tuple[str, str]] = {}
    for argument in arguments:
        name, path = named(argument)
        if name is None:
            raise UserError(f"{argument}: expected NAME=RESULT")
        result = read_transduction_result(path)
        first, split = splits.setdefault(result.task, (str(path), result.split))
        if result.split != split:
            raise UserError(
                f"{first} is on the split {split}, and {path} on {result.split}; give results on one of them"
            )
        panels.setdefault(result.task, {}).setdefault(name, []).append(result)
    return panels


def draw_panel(axes: Any, networks: Mapping[str, Trials], looks: Mapping[str, Mapping[str, str]]) -> None:
    """The networks on one task."""
    for name, trials in networks.items():
        draw_intervals(axes, name, accuracy_by_length(trials), looks[name])
    axes.set_ylim(0, 102)


def accuracy_by_length(trials: Trials) -> dict[int, tuple[float, float, float]]:
    """For each length, ascending, the median, the least and the greatest accuracy of the trials, in percent."""
    accuracies: dict[int, list[float]] = defaultdict(list)
    for trial in trials:
        for scores in trial.by_length:
            accuracies[scores.length].append(100 * scores.accuracy.value)
    return {
        length: (statistics.median(values), min(values), max(values)) for length, values in sorted(accuracies.items())
    }
