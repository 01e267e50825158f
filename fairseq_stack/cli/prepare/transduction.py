"""``fairseq-stack prepare transduction``."""

from __future__ import annotations

import argparse

from fairseq_stack_preprocess.errors import flag_of
from fairseq_stack_preprocess.transduction import task_corpus as corpus
from fairseq_stack_preprocess.transduction.task_options import AUTHORS, DRAWN, SETTINGS, Options
from fairseq_stack_preprocess.transduction.tasks import TASKS

from ._common import SIZES, add_common, options_from, run_corpus

SUMMARY = "pairs of strings of equal length: reversal, XOR, brackets, formulas, agreement (for neural stacks)"

DESCRIPTION = """\
Pairs of strings of equal length for neural stacks: the tasks of Hao et al. (2018),
the further tasks of their code, the tasks of Delétang et al. (2023) and of the
first version of their code, and the tasks of DeltaStack (2026). Lengths and
depths default to the papers'. The test set of the first six tasks is the authors'
own. task.json names the alphabet in the order of the authors' one-hot vectors,
the blank, and which symbols count in scores.

tasks:
""" + "\n".join(f"  {task.name:29}  {task.form}" for task in TASKS.values())

EXAMPLE = """\
examples:
  fairseq-stack prepare transduction data/reversal --task reversal --seed 1
  fairseq-stack prepare transduction data/deep --task parenthesis \\
      --test-set drawn --test-depth 16"""

MEANINGS = {
    "symbols": "number of different symbols in w",
    "depth": "maximum depth of a derivation",
    "min_length": "minimum length of w, of bits or of an expression; counting: minimum n",
    "max_length": "maximum length",
    "mean_length": "mean length, before lengths are clipped to the range",
    "std_length": "standard deviation of the length",
}

NAMED = 10
"""The number of tasks that the help names for one default."""

DEFAULT_SIZES = {"train": Options.train_size, "valid": Options.valid_size, "test": "1000, or 50 for counting"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--task", metavar="NAME", choices=list(TASKS), required=True, help="one of the tasks above")
    _add_settings(parser)
    for split, default in DEFAULT_SIZES.items():
        parser.add_argument(f"--{split}-size", type=int, metavar="N", help=f"pairs in {split} (default: {default})")
    parser.add_argument(
        "--test-set",
        choices=(AUTHORS, DRAWN),
        help="the test set of the paper's authors, or one drawn here (default: authors, where there is one)",
    )
    parser.add_argument("--test-seed", type=int, metavar="N", help="random seed of a drawn test set (default: 0)")
    add_common(parser, seed=Options.seed, limit="at most N pairs in each split, for a quick look")


def _add_settings(parser: argparse.ArgumentParser) -> None:
    """Declare what tasks can be set to, each with the defaults that it has."""
    group = parser.add_argument_group("settings of a task, for train and valid")
    test_group = parser.add_argument_group("settings of a drawn test set")
    for name in SETTINGS:
        kind = float if name in ("mean_length", "std_length") else int
        metavar = "X" if kind is float else "N"
        default = describe_defaults({task.name: task.train.get(name) for task in TASKS.values()})
        group.add_argument(flag_of(name), type=kind, metavar=metavar, help=f"{MEANINGS[name]} (default: {default})")
        if name != "symbols":
            default = describe_defaults({task.name: task.test.get(name) for task in TASKS.values()})
            test_group.add_argument(
                flag_of(f"test_{name}"), type=kind, metavar=metavar, help=f"likewise for test (default: {default})"
            )


def describe_defaults(defaults: dict[str, float | None]) -> str:
    """The default of each task that has one; tasks with the same default stand together, the most as "the others"."""
    values = dict.fromkeys(value for value in defaults.values() if value is not None)
    tasks = {value: [task for task in defaults if defaults[task] == value] for value in values}
    most = max(tasks, key=lambda value: len(tasks[value]))
    if len(tasks[most]) > NAMED:
        tasks = {**{value: names for value, names in tasks.items() if value != most}, most: ["the others"]}
    return "; ".join(f"{value:g} for {', '.join(names)}" for value, names in tasks.items())


def run(args: argparse.Namespace) -> int:
    args.test_size = TASKS[args.task].test_size if args.test_size is None else args.test_size
    return run_corpus(args, options_from(args, Options, limited=SIZES), corpus.prepare)
