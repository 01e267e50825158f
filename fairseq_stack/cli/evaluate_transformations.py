"""``fairseq-stack evaluate-transformations CHECKPOINT --data DIR``: does a model prefer the hierarchical rule?"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fairseq_stack.evaluation.results import method_of, sha_of
from fairseq_stack.evaluation.transformations import (
    ScoredPair,
    TransformationPairs,
    TransformationResult,
    read_transformations,
    scored_pair,
    transformation_scores,
)
from fairseq_stack_preprocess.progress import progress

from .arguments import add_number
from .checkpoint import add_checkpoint, add_device, load_checkpoint, model_of, on_device
from .evaluation import add_intervals, add_outputs, add_split, intervals_of, report, require_outputs

if TYPE_CHECKING:
    from fairseq_stack.hub.answers import AnsweringHub

SUMMARY = "score a model on question formation or tense reinflection"

DESCRIPTION = """\
Evaluate a language model or an encoder-decoder on a split of the corpus that
fairseq-stack prepare transformations wrote to DIR. The table shows how often the
model gives the target, the linear rule's answer, and the word that tells the two
rules apart, and the probabilities of the two answers, all by teacher forcing: for
all pairs with bootstrap intervals over pairs, and for each type of subject."""

EXAMPLE = """\
example:
  fairseq-stack evaluate-transformations checkpoints/questions \\
      --data data/questions --split gen --json questions.json --csv pairs.csv"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_checkpoint(parser, corpus="the corpus of fairseq-stack prepare transformations, or its data-bin")
    add_split(parser, "the pairs to score: gen, for example")
    add_number(parser, "--batch-size", "maximum number of answers at a time (default: no limit)", least=1)
    add_number(parser, "--max-tokens", "maximum number of words of sources and answers at a time", 8000, least=1)
    parser.add_argument(
        "--control",
        metavar="CONTROL",
        help="change the stacks of the model: permuted-readings gives each position the reading of an earlier one, "
        "drawn with --seed; with memory-D, nondeterministic stacks forget what was pushed more than D steps ago",
    )
    add_intervals(parser)
    add_outputs(parser, row="pair")
    add_device(parser)


def run(args: argparse.Namespace) -> int:
    require_outputs(args)
    data = read_transformations(args.data, args.split)
    hub = load_checkpoint(args, data.dictionaries)
    from fairseq_stack.hub.answers import require_answers

    hub = on_device(require_answers(hub), args)
    if args.control is not None:
        from fairseq_stack.hub.controls import apply_control

        apply_control(hub, args.control, args.seed)
    scored = _score(hub, data, args)
    intervals = intervals_of(args)
    overall, by_subject = transformation_scores(scored, intervals)
    result = TransformationResult(
        signature=method_of(
            task=data.task.name,
            split=args.split,
            pairs=len(data.pairs),
            sha=sha_of([(pair.source, pair.target, pair.linear) for pair in data.pairs]),
            **({} if args.control is None else {"control": args.control}),
            **intervals.options,
        ),
        task=data.task.name,
        split=args.split,
        model=model_of(hub, args.checkpoint),
        overall=overall,
        by_subject=by_subject,
    )
    return report(args, result, [pair.row() for pair in scored])


def _score(hub: AnsweringHub, data: TransformationPairs, args: argparse.Namespace) -> list[ScoredPair]:
    from fairseq_stack.hub.answers import Answer, score_answers

    words = [(word.place, word.rivals) if word else () for word in data.deciding_words]
    targets = [Answer(pair.source, pair.target, *of_pair) for pair, of_pair in zip(data.pairs, words, strict=True)]
    differing = [number for number, pair in enumerate(data.pairs) if pair.target != pair.linear]
    answers = [*targets, *(Answer(data.pairs[number].source, data.pairs[number].linear) for number in differing)]
    scores = score_answers(hub, answers, batch_size=args.batch_size, max_tokens=args.max_tokens)
    by_place = dict(progress(scores, label=f"{args.split} answers", total=len(answers), unit="answer"))
    linear = dict(zip(differing, range(len(targets), len(answers)), strict=True))
    return [
        scored_pair(pair, word, by_place[number], by_place[linear.get(number, number)])
        for number, (pair, word) in enumerate(zip(data.pairs, data.deciding_words, strict=True))
    ]
