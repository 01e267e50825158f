"""``fairseq-stack evaluate-blimp CHECKPOINT --blimp DIR``: a language model on minimal pairs."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.blimp import BLiMPResult, Pair, Scored, accuracies, read_pairs
from fairseq_stack.evaluation.results import method_of, sha_of
from fairseq_stack_preprocess.progress import progress

from .arguments import add_number
from .checkpoint import LANGUAGE_MODEL, add_checkpoint, load_language_model, model_of, on_device, require_ends
from .evaluation import add_intervals, add_outputs, intervals_of, report, require_outputs
from .sentence_options import add_scoring, add_text, beam_in_signature, sizes, text_changer

if TYPE_CHECKING:
    from fairseq_stack.hub.language_model import LanguageModel

SUMMARY = "score a language model on minimal pairs"

DESCRIPTION = """\
Score a language model on BLiMP (Warstadt et al., 2020): how often it assigns the
higher probability to the acceptable sentence of a pair, for each phenomenon and
field, and the mean over all paradigms, with bootstrap intervals over pairs. A tie
counts one half, and the table shows the percentage of ties. Use the text options to
describe the model's training text."""

EXAMPLE = """\
example:
  fairseq-stack evaluate-blimp checkpoints/ptb --blimp blimp/data --penn \\
      --lowercase --without-punctuation --json blimp.json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_checkpoint(parser, checkpoint=LANGUAGE_MODEL)
    parser.add_argument(
        "--blimp", metavar="DIR", type=Path, required=True, help="the folder with BLiMP's paradigms, *.jsonl"
    )
    add_number(parser, "--pairs", "pairs of each paradigm, 0 for all", 100, least=0)
    add_text(parser)
    parser.add_argument(
        "--without-end",
        action="store_true",
        help="leave out the probability that the sentence ends, as lm-eval and minicons do",
    )
    add_scoring(parser)
    add_intervals(parser)
    add_outputs(parser, row="pair")


def run(args: argparse.Namespace) -> int:
    require_outputs(args)
    pairs = read_pairs(args.blimp, args.pairs or None)
    change, text = text_changer(args)
    model = load_language_model(args)
    if not args.without_end:
        require_ends(model, "add --without-end")
    intervals = intervals_of(args)
    scored = _score(model, pairs, change, args)
    overall, fields, phenomena, paradigms = accuracies(scored, intervals)
    result = BLiMPResult(
        signature=method_of(
            pairs=len(pairs),
            sha=sha_of([(pair.good, pair.bad) for pair in pairs]),
            text=text,
            end="no" if args.without_end else "yes",
            **beam_in_signature(model, args),
            ties="half",
            **intervals.options,
        ),
        model=model_of(model, args.checkpoint),
        overall=overall,
        fields=fields,
        phenomena=phenomena,
        paradigms=paradigms,
    )
    return report(args, result, [pair.row() for pair in scored])


def _score(
    model: LanguageModel, pairs: Sequence[Pair], change: Callable[[str], str], args: argparse.Namespace
) -> list[Scored]:
    from fairseq_stack.hub.surprisals import surprisals

    texts = [_changed(sentence, pair, change) for pair in pairs for sentence in (pair.good, pair.bad)]
    # Telescoping surprisals sum to -log p of the sentence with the parses of the beam.
    of_texts = surprisals(on_device(model, args), texts, telescoping=model.parses_sentences, **sizes(args))
    words = list(progress(of_texts, label="BLiMP", total=len(texts), unit="sentence"))
    scored = slice(-1) if args.without_end else slice(None)  # the last word is the end
    scores = [-math.fsum(word.surprisal for word in sentence[scored]) for sentence in words]
    unknown = [any(word.is_unknown for word in sentence) for sentence in words]
    tokens = [model.indices(model.cut(text)) for text in texts]
    for good, bad in zip(range(0, len(texts), 2), range(1, len(texts), 2), strict=True):
        if tokens[good] == tokens[bad]:
            scores[bad] = scores[good]  # rounding depends on what else is in a batch
    return [
        Scored(pair, scores[place], scores[place + 1], unknown[place] or unknown[place + 1])
        for place, pair in zip(range(0, len(texts), 2), pairs, strict=True)
    ]


def _changed(sentence: str, pair: Pair, change: Callable[[str], str]) -> str:
    """The sentence as the model reads it; an empty one would win every pair."""
    text = change(sentence)
    if not text:
        raise UserError(f"{pair.paradigm}: the text options leave nothing of the sentence {sentence!r}")
    return text
