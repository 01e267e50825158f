"""``fairseq-stack evaluate-transduction CHECKPOINT --data DIR``: a model on the strings of a transduction task."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.markdown import table
from fairseq_stack.evaluation.scores import own_method
from fairseq_stack_preprocess.errors import require_at_least
from fairseq_stack_preprocess.layout import DATA_BIN
from fairseq_stack_preprocess.progress import progress

from .arguments import Subparsers
from .checkpoint import add_checkpoint, add_device, load_checkpoint, model_of, on_device
from .intervals import add_intervals, check_intervals
from .results import add_outputs, check_outputs, report, sha_of, title

if TYPE_CHECKING:
    from fairseq_stack.evaluation.results import Estimate
    from fairseq_stack.evaluation.transduction import Accuracy, TransductionResult

DESCRIPTION = """\
Evaluate a model of transductions on a split of the corpus that fairseq-stack prepare
transduction wrote to DIR. For each length and for all strings, the table has the
share of scored symbols that the model writes, and the share of strings in which all
scored symbols are right, both with bootstrap intervals over strings."""

EXAMPLE = """\
example:
  fairseq-stack evaluate-transduction checkpoints/reversal/checkpoint_last.pt \\
      --data data/reversal --json reversal.json"""


def add_parser(subparsers: Subparsers) -> None:
    """Declare the subcommand."""
    parser = subparsers.add_parser(
        "evaluate-transduction",
        help="score a model on pairs of strings of equal length",
        description=DESCRIPTION,
        epilog=EXAMPLE,
    )
    add_checkpoint(parser, corpus="the corpus of fairseq-stack prepare transduction, or its data-bin")
    parser.add_argument("--split", metavar="NAME", default="test", help="the strings to score (default: test)")
    parser.add_argument(
        "--batch-size", type=int, metavar="N", default=100, help="most strings at a time (default: 100)"
    )
    add_intervals(parser)
    add_outputs(parser, row="length")
    add_device(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the table, and write the result."""
    require_at_least("--batch-size", args.batch_size, 1)
    check_intervals(args)
    check_outputs(args)
    from fairseq_stack.evaluation.results import rows_by_length

    result = evaluate(args)
    report(result, _lines(result), rows_by_length(result.by_length), args)
    return 0


def evaluate(args: argparse.Namespace) -> TransductionResult:
    """The result that the arguments ask for.

    Raises:
        UserError: the checkpoint holds another kind of model, the data do not fit it, or nothing is scored in them.
    """
    data = args.data / DATA_BIN if (args.data / DATA_BIN).is_dir() else args.data
    hub = load_checkpoint(args, data)
    import numpy as np

    from fairseq_stack.evaluation.intervals import Intervals
    from fairseq_stack.evaluation.transduction import (
        Counts,
        TransductionResult,
        accuracy_by_length,
        overall_accuracy,
    )
    from fairseq_stack.hub.transductions import load_split, require_transductions, transduce

    hub = on_device(require_transductions(hub), args)
    content = load_split(hub, args.split)
    found = transduce(hub, args.split, batch_size=args.batch_size)
    strings = list(progress(found, label=f"{args.split} strings", total=len(content) // 2, unit="string"))
    lengths, scored, correct = (
        np.array([getattr(string, name) for string in strings]) for name in ("length", "scored", "correct")
    )
    counts = Counts(lengths, scored, correct)
    if not counts.scored.any():
        raise UserError(f"{data}, {args.split}: no target has one of the scored words {' '.join(hub.task.score_words)}")
    intervals = Intervals(args.bootstrap, args.confidence, args.seed)
    return TransductionResult(
        signature=own_method(
            task=hub.task.task_name,
            split=args.split,
            strings=len(strings),
            sha=sha_of(content),
            score=",".join(hub.task.score_words),
            bootstrap=args.bootstrap,
            confidence=args.confidence,
            seed=args.seed,
        ),
        task=hub.task.task_name,
        split=args.split,
        score_words=tuple(hub.task.score_words),
        bootstrap=args.bootstrap,
        confidence=args.confidence,
        model=model_of(hub, args.checkpoint),
        overall=overall_accuracy(counts, intervals),
        by_length=accuracy_by_length(counts, intervals),
    )


def _lines(result: TransductionResult) -> list[str]:
    """The result as a user reads it."""
    rows = [_row(f"{accuracy.length}", accuracy) for accuracy in result.by_length]
    columns = ("length", "strings", "scored", "correct", "accuracy", "interval", "whole strings", "interval")
    return [
        title(f"{result.task}, {result.split}", result.model),
        "",
        table(columns, [*rows, _row("all", result.overall)]),
    ]


def _row(name: str, accuracy: Accuracy) -> list[str]:
    counts = (accuracy.strings, accuracy.scored, accuracy.correct)
    shares = (accuracy.accuracy, accuracy.whole_strings)
    return [name, *(f"{count:,}" for count in counts), *(cell for share in shares for cell in _cells(share))]


def _cells(share: Estimate) -> tuple[str, str]:
    return f"{100 * share.value:.2f} %", f"{100 * share.low:.2f} to {100 * share.high:.2f}"
