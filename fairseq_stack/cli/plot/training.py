"""``fairseq-stack plot training RUN...``: the validations of training runs."""

from __future__ import annotations

import argparse
import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.training_log import TrainingCurve, read_training_curve, read_valid_bound
from fairseq_stack.plots.panels import draw_bound, draw_runs, scale_logarithmically

from .figures import (
    DIFFERENCE,
    Looks,
    add_log,
    add_output,
    draw_panels,
    looks_of,
    require_drawable,
    split_names,
    title_of,
)

LOG_NAME = "train.log"
LOSS = "validation loss\n(nats per token)"

Panels: TypeAlias = dict[str, dict[str, list[TrainingCurve]]]
"""The runs of each model in each panel."""

SUMMARY = "the validations of training runs"

DESCRIPTION = """\
Draw the validations of training runs, from the logs that fairseq-train writes with
--log-format json --log-file LOG. A RUN is a log, or a folder with train.log in it.
Runs with the same NAME are restarts of one model: the run with the lowest
validation loss is a thick line, the others are thin. Write the name of a panel and a
colon before NAME: dyck:Tf=RUN and hardest-cfl:Tf=RUN are drawn side by side."""

EXAMPLE = """\
examples:
  fairseq-stack plot training checkpoints/tf checkpoints/nd --output training.png
  fairseq-stack plot training dyck:Tf=out/dyck/tf-1 dyck:Tf=out/dyck/tf-2 \\
      dyck:Tf+Nd=out/dyck/nd-1 --bound --log --epochs --output training.pdf"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", metavar="[[PANEL:]NAME=]RUN", nargs="+", help="a training run (default name: the end of its path)"
    )
    add_output(parser)
    what = parser.add_mutually_exclusive_group()
    loss = "the loss in nats per token"
    what.add_argument(
        "--metric",
        metavar="METRIC",
        help=f"a score of the validations as the log names it, such as ppl or bleu (default: {loss})",
    )
    what.add_argument(
        "--bound",
        action="store_true",
        help="subtract the lower bound on the validation data, from lower_bound.json of fairseq-stack prepare cfl",
    )
    parser.add_argument("--epochs", action="store_true", help="draw against epochs instead of updates")
    add_log(parser)


def run(args: argparse.Namespace) -> int:
    require_drawable(args.output)
    panels: Panels = {}
    arguments = list(split_names(args.runs))
    unnamed = names_of([path for name, path in arguments if name is None])
    for name, path in arguments:
        panel, model = ("", unnamed[path]) if name is None else panel_and_model(name)
        panels.setdefault(panel, {}).setdefault(model, []).append(read_run(path, args))
    looks = looks_of(panels)
    draw_panels(
        {title_of(panel): models for panel, models in panels.items()},
        args.output,
        lambda axes, models: draw_panel(axes, models, looks, args),
        xlabel="epochs" if args.epochs else "updates",
        ylabel=f"validation {args.metric}" if args.metric else DIFFERENCE if args.bound else LOSS,
        title=args.title,
        height=3.5,
    )
    print(args.output)
    return 0


def panel_and_model(name: str) -> tuple[str, str]:
    """The parts of ``[PANEL:]NAME``."""
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


def read_run(run: Path, args: argparse.Namespace) -> TrainingCurve:
    """Read what is drawn of a run."""
    log = run / LOG_NAME if run.is_dir() else run
    curve = read_training_curve(log, args.metric)
    bound = read_valid_bound(log) if args.bound else 0.0
    updates = curve.updates_in_epoch if args.epochs else 1.0
    if updates is None:
        raise UserError(f"{log} does not say how many updates an epoch has; leave out --epochs")
    values = {place / updates: value - bound for place, value in curve.values.items()}
    return dataclasses.replace(curve, values=values, least_loss=curve.least_loss - bound)


def draw_panel(
    axes: Any, models: Mapping[str, Sequence[TrainingCurve]], looks: Looks, args: argparse.Namespace
) -> None:
    """The validations of the runs of each model; the run with the least loss is the thick one."""
    for model, runs in models.items():
        best = min(range(len(runs)), key=lambda number: runs[number].least_loss)
        draw_runs(axes, model, [run.values for run in runs], best, looks[model])
    if args.log:
        scale_logarithmically(axes)
    elif args.bound:
        draw_bound(axes, 0)
