"""``fairseq-stack plot accuracy NAME=RESULT...``: the accuracy of transductions by length of string."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fairseq_stack.errors import UserError
from fairseq_stack.plots.panels import draw_legend, draw_runs, literal
from fairseq_stack.plots.style import figure, grid, style

from ..arguments import Subparsers
from ._common import add_figure, check_figure, named

if TYPE_CHECKING:
    from fairseq_stack.evaluation.transduction import TransductionResult

DESCRIPTION = """\
Draw the accuracy by length of string, with a panel for each task and network. A
RESULT is a file that fairseq-stack evaluate-transduction wrote. Several results of
one NAME on one task are trials: each is a thin line, and the thick line is their
median."""

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
    draw(read_trials(args.results), args.output)
    print(args.output)
    return 0


def read_trials(arguments: Sequence[str]) -> dict[tuple[str, str], Trials]:
    """The trials by task and network.

    Raises:
        UserError: a result has no name, no lengths or cannot be read, or results on one task are on different splits.
    """
    from fairseq_stack.evaluation.results import require_lengths
    from fairseq_stack.evaluation.transduction import TransductionResult

    found: dict[tuple[str, str], Trials] = {}
    splits: dict[str, tuple[str, str]] = {}
    for argument in arguments:
        name, path = named(argument)
        if name is None:
            raise UserError(f"{argument}: expected NAME=RESULT")
        result = TransductionResult.read(path)
        require_lengths(path, result.by_length)
        first, split = splits.setdefault(result.task, (str(path), result.split))
        if result.split != split:
            raise UserError(
                f"{first} is on the split {split}, and {path} on {result.split}; give results on one of them"
            )
        found.setdefault((result.task, name), []).append(result)
    return found


def draw(networks: Mapping[tuple[str, str], Trials], path: Path) -> None:
    """Draw a panel for each network."""
    number = len(networks)
    rows, columns = grid(number)
    with figure(path, rows, columns, (max(3.6 * columns, 4.5), 2.6 * rows), path.suffix[1:]) as panels:
        for axes, ((task, name), trials) in zip(panels.flat, networks.items(), strict=False):
            curves = [accuracy_by_length(trial) for trial in trials]
            look = style(0)
            draw_runs(axes, f"median of {len(curves)}", [*curves, median(curves)], len(curves), look)
            axes.plot([], [], label="a trial", linewidth=0.7, alpha=0.6, color=look["color"])
            axes.set(title=literal(f"{task}: {name}"), ylim=(0, 103), xlabel="length")
        for axes in panels[:, 0]:
            axes.set_ylabel("accuracy (%)")
        draw_legend(panels, number)


def accuracy_by_length(result: TransductionResult) -> dict[float, float]:
    """The accuracy for each length, ascending, in percent."""
    return {float(scores.length): 100 * scores.accuracy.value for scores in result.by_length}


def median(curves: Sequence[Mapping[float, float]]) -> dict[float, float]:
    """The median for each length that all trials have."""
    return {
        length: statistics.median(curve[length] for curve in curves)
        for length in curves[0]
        if all(length in curve for curve in curves)
    }
