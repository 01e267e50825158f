"""``fairseq-stack evaluate-blimp CHECKPOINT --blimp DIR``: a language model on minimal pairs."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.markdown import table
from fairseq_stack.evaluation.scores import own_method
from fairseq_stack_preprocess.errors import require_at_least
from fairseq_stack_preprocess.progress import progress

from .arguments import Subparsers
from .checkpoint import add_checkpoint, load_checkpoint, model_of, on_device
from .intervals import add_intervals, check_intervals
from .results import add_outputs, check_outputs, report, sha_of, title
from .sentences import add_scoring, add_text, beam_in_signature, check_scoring, sizes, text_changer

if TYPE_CHECKING:
    from fairseq_stack.evaluation.blimp import Accuracy, BLiMPResult, Pair, Scored
    from fairseq_stack.evaluation.results import Row
    from fairseq_stack.hub.interface import Hub

DESCRIPTION = """\
Score a language model on BLiMP (Warstadt et al., 2020): how often it finds the
acceptable sentence of a pair more probable than the other one, for each phenomenon
and field, and the mean over all paradigms, with bootstrap intervals over pairs. A
pair whose sentences are equally probable counts one half; the table has the share of
these ties. Say with the options of the text what the text of the model looks like."""

EXAMPLE = """\
example:
  fairseq-stack evaluate-blimp checkpoints/ptb --blimp blimp/data --penn \\
      --lowercase --without-punctuation --json blimp.json"""


def add_parser(subparsers: Subparsers) -> None:
    """Declare the subcommand."""
    parser = subparsers.add_parser(
        "evaluate-blimp", help="score a language model on minimal pairs", description=DESCRIPTION, epilog=EXAMPLE
    )
    add_checkpoint(parser)
    parser.add_argument(
        "--blimp", metavar="DIR", type=Path, required=True, help="the folder with BLiMP's paradigms, *.jsonl"
    )
    parser.add_argument(
        "--pairs", type=int, metavar="N", default=100, help="pairs of each paradigm, 0 for all (default: 100)"
    )
    add_text(parser)
    add_scoring(parser)
    add_intervals(parser)
    add_outputs(parser, row="pair")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the table, and write the result."""
    require_at_least("--pairs", args.pairs, 0)
    check_scoring(args)
    check_intervals(args)
    check_outputs(args)
    result, pairs = evaluate(args)
    report(result, _lines(result), [_row_of_pair(pair) for pair in pairs], args)
    return 0


def evaluate(args: argparse.Namespace) -> tuple[BLiMPResult, Sequence[Scored]]:
    """The result that the arguments ask for, and its pairs.

    Raises:
        UserError: the pairs cannot be read, or the model cannot score them.
    """
    from fairseq_stack.evaluation.blimp import BLiMPResult, accuracies, read_pairs
    from fairseq_stack.evaluation.intervals import Intervals

    pairs = read_pairs(args.blimp, args.pairs or None)
    change, text = text_changer(args)
    hub = load_checkpoint(args, args.data)
    intervals = Intervals(args.bootstrap, args.confidence, args.seed)
    scored = _score(hub, pairs, change, args)
    overall, fields, phenomena, paradigms = accuracies(scored, intervals)
    result = BLiMPResult(
        signature=own_method(
            pairs=len(pairs),
            sha=sha_of([(pair.good, pair.bad) for pair in pairs]),
            text=text,
            **beam_in_signature(hub, args),
            ties="half",
            bootstrap=args.bootstrap,
            confidence=args.confidence,
            seed=args.seed,
        ),
        model=model_of(hub, args.checkpoint),
        bootstrap=args.bootstrap,
        confidence=args.confidence,
        overall=overall,
        fields=fields,
        phenomena=phenomena,
        paradigms=paradigms,
    )
    return result, scored


def _score(hub: Hub, pairs: Sequence[Pair], change: Callable[[str], str], args: argparse.Namespace) -> list[Scored]:
    from fairseq_stack.evaluation.blimp import Scored
    from fairseq_stack.hub.parses import parses_sentences
    from fairseq_stack.hub.surprisals import surprisals

    texts = [_changed(sentence, pair, change) for pair in pairs for sentence in (pair.good, pair.bad)]
    # Telescoping surprisals add up to -log p of the sentence with the parses of the beam.
    found = surprisals(on_device(hub, args), texts, telescoping=parses_sentences(hub), **sizes(args))
    words = list(progress(found, label="BLiMP", total=len(texts), unit="sentence"))
    scores = [-math.fsum(word.surprisal for word in sentence) for sentence in words]
    unknown = [any(word.is_unknown for word in sentence) for sentence in words]
    return [
        Scored(pair, scores[place], scores[place + 1], unknown[place] or unknown[place + 1])
        for place, pair in zip(range(0, len(texts), 2), pairs, strict=True)
    ]


def _changed(sentence: str, pair: Pair, change: Callable[[str], str]) -> str:
    """The sentence as the model reads it; an empty one would win every pair."""
    text = change(sentence)
    if not text:
        raise UserError(f"{pair.paradigm}: the options of the text leave nothing of the sentence {sentence!r}")
    return text


def _lines(result: BLiMPResult) -> list[str]:
    """The result as a user reads it."""
    parts = (result.fields, result.phenomena, (result.overall,))
    columns = ("", "pairs", "with unknown words", "ties", "accuracy", "interval")
    return [
        title("BLiMP", result.model),
        "",
        table(columns, [_row(accuracy) for part in parts for accuracy in part]),
    ]


def _row_of_pair(scored: Scored) -> Row:
    return {
        **vars(scored.pair),
        "log_p_good": scored.good,
        "log_p_bad": scored.bad,
        "tie": scored.good == scored.bad,
        "unknown": scored.unknown,
    }


def _row(accuracy: Accuracy) -> list[str]:
    estimate = accuracy.accuracy
    return [
        accuracy.name,
        f"{accuracy.pairs:,}",
        f"{100 * accuracy.unknown:.1f} %",
        f"{100 * accuracy.ties:.1f} %",
        f"{100 * estimate.value:.1f} %",
        f"{100 * estimate.low:.1f} to {100 * estimate.high:.1f}",
    ]
