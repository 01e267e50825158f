"""``fairseq-stack plot training RUN...``: the validations of training runs."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from fairseq_stack.errors import UserError
from fairseq_stack.plots.panels import draw_bound, draw_legend, draw_runs, hide_unused, literal, scale_logarithmically
from fairseq_stack.plots.style import figure, grid, styles_of

from ..arguments import Subparsers
from ._common import DIFFERENCE, add_figure, add_log, check_figure, named

if TYPE_CHECKING:
    from fairseq_stack.evaluation.training_curve import TrainingCurve

DESCRIPTION = """\
Draw the validations of training runs, from the logs that fairseq-train writes with
--log-format json --log-file LOG. A RUN is a log, or a folder with train.log in it.
Runs with the same NAME are restarts of one model: the run with the least validation
loss is a thick line, the others are thin. A colon puts a panel before the name:
dyck:Tf=RUN and hardest-cfl:Tf=RUN are drawn side by side."""

EXAMPLE = """\
examples:
  fairseq-stack plot training checkpoints/tf checkpoints/nd --output training.png
  fairseq-stack plot training dyck:Tf=out/dyck/tf-1 dyck:Tf=out/dyck/tf-2 \\
      dyck:Tf+Nd=out/dyck/nd-1 --bound --log --epochs --output training.pdf"""

LOG_NAME = "train.log"
LOSS = "validation loss\n(nats a token)"

Panels: TypeAlias = "dict[str, dict[str, list[TrainingCurve]]]"
"""The runs of each model in each panel."""


def add_parser(plots: Subparsers) -> None:
    """Declare the subcommand."""
    parser = plots.add_parser(
        "training", help="the validations of training runs", description=DESCRIPTION, epilog=EXAMPLE
    )
    parser.add_argument(
        "runs", metavar="[[PANEL:]NAME=]RUN", nargs="+", help="a training run (default name: the end of its path)"
    )
    add_figure(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--metric",
        metavar="METRIC",
        help="a figure of the validations as the log names it, such as ppl or bleu (default: the loss in nats a token)",
    )
    what.add_argument(
        "--bound",
        action="store_true",
        help="subtract the lower bound on the validation data, from lower_bound.json of fairseq-stack prepare cfl",
    )
    parser.add_argument("--epochs", action="store_true", help="draw against epochs instead of updates")
    add_log(parser)
    parser.add_argument("--learning-rate", action="store_true", help="draw the learning rate as well")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Draw the figure and print its path."""
    check_figure(args.output)
    panels: Panels = {}
    arguments = list(map(named, args.runs))
    unnamed = names_of([path for name, path in arguments if name is None])
    for name, path in arguments:
        panel, model = ("", unnamed[path]) if name is None else panel_and_model(name)
        curve = read_run(path, args.metric, bound=args.bound, epochs=args.epochs, learning_rate=args.learning_rate)
        panels.setdefault(panel, {}).setdefault(model, []).append(curve)
    what = f"validation {args.metric}" if args.metric is not None else DIFFERENCE if args.bound else LOSS
    draw(
        panels, args.output, what, bound=args.bound, epochs=args.epochs, log=args.log, learning_rate=args.learning_rate
    )
    print(args.output)
    return 0


def panel_and_model(name: str) -> tuple[str, str]:
    """The parts of ``[PANEL:]NAME``.

    Raises:
        UserError: the name of the model is empty.
    """
    panel, _, model = name.rpartition(":")
    if not model:
        raise UserError(f"{name}=...: expected the name of a model after the colon")
    return panel, model


def names_of(runs: Sequence[Path]) -> dict[Path, str]:
    """The names of runs that were given none: their paths, without the folders that all of them are in."""
    if not runs:
        return {}
    folder = os.path.commonpath([run.absolute().parent for run in runs])
    return {run: os.path.relpath(run.absolute(), folder) for run in runs}


def read_run(run: Path, metric: str | None, *, bound: bool, epochs: bool, learning_rate: bool) -> TrainingCurve:
    """Read what is drawn of a run.

    Raises:
        UserError: the log lacks what the options ask for; see also :mod:`fairseq_stack.evaluation.training_curve`.
    """
    from fairseq_stack.evaluation.training_curve import read_training_curve, read_valid_bound

    log = run / LOG_NAME if run.is_dir() else run
    curve = read_training_curve(log, metric)
    if learning_rate and not any(rate > 0 for rate in curve.learning_rates.values()):
        raise UserError(f"{log} has no learning rate greater than 0; leave out --learning-rate")
    if bound:
        curve = curve.above(read_valid_bound(log))
    if not epochs:
        return curve
    if curve.updates_in_epoch is None:
        raise UserError(f"{log} does not say how many updates an epoch has; leave out --epochs")
    return curve.by_epoch(curve.updates_in_epoch)


def draw(panels: Panels, path: Path, what: str, *, bound: bool, epochs: bool, log: bool, learning_rate: bool) -> None:
    """Draw the runs by panel and model; ``what`` says what their values are."""
    rows, columns = grid(len(panels))
    heights = (3.0, 1.2) if learning_rate else (3.0,)
    looks = styles_of(model for models in panels.values() for model in models)
    size = (max(3.6 * columns, 4.5), (0.5 + sum(heights)) * rows)
    with figure(path, len(heights) * rows, columns, size, path.suffix[1:], heights=heights * rows) as drawn:
        curves, rates = drawn[:: len(heights)], drawn[len(heights) - 1 :: len(heights)]
        for (panel, models), axes, below in zip(panels.items(), curves.flat, rates.flat, strict=False):
            draw_panel(axes, models, looks, log=log)
            axes.set_title(literal(panel))
            if bound and not log:
                draw_bound(axes, 0)
            if learning_rate:
                below.sharex(axes)
                draw_rates(below, models, looks)
            below.set_xlabel("epochs" if epochs else "updates")
        for axes in curves[:, 0]:
            axes.set_ylabel(what)
        if learning_rate:
            hide_unused(rates, len(panels))
        draw_legend(curves, len(panels))


def draw_panel(
    axes: Any, models: Mapping[str, Sequence[TrainingCurve]], looks: Mapping[str, dict[str, str]], *, log: bool
) -> None:
    """The validations of the runs of each model."""
    for model, runs in models.items():
        draw_runs(axes, model, [run.values for run in runs], _best(runs), looks[model])
    if log:
        scale_logarithmically(axes)


def draw_rates(axes: Any, models: Mapping[str, Sequence[TrainingCurve]], looks: Mapping[str, dict[str, str]]) -> None:
    """The learning rates of the same runs, on a logarithmic scale, where they are not zero."""
    for model, runs in models.items():
        rates = [{place: rate for place, rate in run.learning_rates.items() if rate > 0} for run in runs]
        draw_runs(axes, model, rates, _best(runs), {**looks[model], "marker": ""})
    axes.set_ylabel("learning rate")
    scale_logarithmically(axes, steps=(1, 3))


def _best(runs: Sequence[TrainingCurve]) -> int:
    """The number of the run with the least validation loss."""
    return min(range(len(runs)), key=lambda number: runs[number].least_loss)
