"""``fairseq-stack evaluate-transduction CHECKPOINT --data DIR``: a model on the strings of a transduction task."""

from __future__ import annotations

import argparse

from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.results import method_of, rows_by_length, sha_of
from fairseq_stack.evaluation.transduction import TransductionResult, accuracy_by_length, overall_accuracy
from fairseq_stack_preprocess.progress import progress

from .arguments import add_number
from .checkpoint import add_checkpoint, add_device, load_checkpoint, model_of, on_device
from .evaluation import add_intervals, add_outputs, add_split, intervals_of, report, require_outputs

SUMMARY = "score a model on pairs of strings of equal length"

DESCRIPTION = """\
Evaluate a transduction model on a split of the corpus that fairseq-stack prepare
transduction wrote to DIR. For each length and for all strings, the table shows the
percentage of scored symbols that are right, and the percentage of strings in which
all scored symbols are right, both with bootstrap intervals over strings."""

EXAMPLE = """\
example:
  fairseq-stack evaluate-transduction checkpoints/reversal/checkpoint_last.pt \\
      --data data/reversal --json reversal.json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_checkpoint(parser, corpus="the corpus of fairseq-stack prepare transduction, or its data-bin")
    add_split(parser)
    add_number(parser, "--batch-size", "maximum number of strings at a time", 100, least=1)
    add_intervals(parser)
    add_outputs(parser, row="length")
    add_device(parser)


def run(args: argparse.Namespace) -> int:
    require_outputs(args)
    hub = load_checkpoint(args, args.data)
    from fairseq_stack.hub.transductions import load_split, require_transductions, transduce

    hub = on_device(require_transductions(hub), args)
    content = load_split(hub, args.split)
    transduced = transduce(hub, args.split, batch_size=args.batch_size)
    strings = list(progress(transduced, label=f"{args.split} strings", total=len(content) // 2, unit="string"))
    score_words = tuple(hub.task.score_words)
    if not any(scored for _, scored, _ in strings):
        raise UserError(f"{args.data}, {args.split}: no target has one of the scored words {' '.join(score_words)}")
    intervals = intervals_of(args)
    result = TransductionResult(
        signature=method_of(
            task=hub.task.task_name,
            split=args.split,
            strings=len(strings),
            sha=sha_of(content),
            score=",".join(score_words),
            **intervals.options,
        ),
        task=hub.task.task_name,
        split=args.split,
        score_words=score_words,
        model=model_of(hub, args.checkpoint),
        overall=overall_accuracy(strings, intervals),
        by_length=accuracy_by_length(strings, intervals),
    )
    return report(args, result, rows_by_length(result.by_length))
