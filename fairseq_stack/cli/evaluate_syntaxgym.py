"""``fairseq-stack evaluate-syntaxgym CHECKPOINT --suites DIR``: a language model on SyntaxGym's test suites."""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.formulas import Surprisals
from fairseq_stack.evaluation.results import method_of, sha_of
from fairseq_stack.evaluation.syntaxgym import (
    MEAN,
    SUM,
    Suite,
    SyntaxGymResult,
    read_suites,
    rows_of_suite,
    score_categories,
    score_suite,
    sentences_of,
    total,
)
from fairseq_stack_preprocess.progress import progress

from .checkpoint import LANGUAGE_MODEL, add_checkpoint, load_language_model, model_of, on_device
from .evaluation import add_outputs, report, require_outputs
from .sentence_options import add_scoring, add_telescoping, add_text, beam_in_signature, sizes, text_changer

if TYPE_CHECKING:
    from fairseq_stack.hub.language_model import LanguageModel
    from fairseq_stack.hub.surprisals import Word

SUMMARY = "score a language model on SyntaxGym's test suites"

DESCRIPTION = """\
Score a language model on the test suites of SyntaxGym (Hu et al., 2020): the
percentage of items of a suite for which its first prediction about surprisals
holds, the mean over the suites of each category, and the mean over all suites. The
JSON also contains all further predictions and the mean surprisal of each region.
Use the text options to describe the model's training text."""

EXAMPLE = """\
example:
  fairseq-stack evaluate-syntaxgym checkpoints/ptb --suites test_suites/json \\
      --penn --lowercase --json syntaxgym.json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_checkpoint(parser, checkpoint=LANGUAGE_MODEL)
    parser.add_argument(
        "--suites", metavar="DIR", type=Path, required=True, help="the folder with the test suites, *.json"
    )
    add_text(parser)
    add_telescoping(parser)
    add_scoring(parser)
    add_outputs(parser, row="prediction of each item")


def run(args: argparse.Namespace) -> int:
    require_outputs(args)
    suites = read_suites(args.suites)
    change, text = text_changer(args)
    model = load_language_model(args)
    measured = list(_measure(model, suites, change, args))
    scores = tuple(score_suite(suite, items, unknown) for suite, items, unknown in measured)
    content = [
        # Suites of sums have the hash of earlier versions, which knew no other metric.
        (suite.name, [formula.text for formula in suite.formulas], suite.items)
        + (() if suite.metric == SUM else (suite.metric,))
        for suite in suites
    ]
    beam = beam_in_signature(model, args, args.telescoping)
    result = SyntaxGymResult(
        signature=method_of(suites=len(suites), sha=sha_of(content), text=text, **beam),
        model=model_of(model, args.checkpoint),
        accuracy=total(scores),
        categories=score_categories(scores),
        suites=scores,
    )
    return report(args, result, [row for suite, items, _ in measured for row in rows_of_suite(suite, items)])


def _measure(
    model: LanguageModel, suites: Sequence[Suite], change: Callable[[str], str], args: argparse.Namespace
) -> Iterator[tuple[Suite, list[Surprisals], float]]:
    """For each suite the surprisals of its items in bits, and the share of its sentences with an unknown word."""
    from fairseq_stack.hub.surprisals import surprisals

    sentences = [
        _changed(parts, change, f"{suite.name}, item {item.number}, {condition}")
        for suite in suites
        for item in suite.items
        for condition, parts in sentences_of(item).items()
    ]
    of_sentences = surprisals(
        on_device(model, args),
        (" ".join(part for _, part in parts) for parts in sentences),
        telescoping=args.telescoping,
        **sizes(args),
    )
    words = list(progress(of_sentences, label="SyntaxGym", total=len(sentences), unit="sentence"))
    pairs = zip(sentences, words, strict=True)
    for suite in suites:
        items: list[Surprisals] = []
        unknown = []
        for item in suite.items:
            of_item: dict[str, dict[int, float]] = {}
            known: dict[tuple[int, ...], float] = {}
            for condition, regions in item.regions.items():
                parts, sentence = next(pairs)
                tokens = model.indices(model.cut(" ".join(part for _, part in parts)))
                sentence = _equal_where_tokens_are(sentence, tokens, known)
                of_item[condition] = dict.fromkeys(regions, 0.0) | _of_regions(parts, sentence, suite.metric)
                unknown.append(any(word.is_unknown for word in sentence))
            items.append(of_item)
        yield suite, items, sum(unknown) / len(unknown)


def _changed(parts: Sequence[tuple[int, str]], change: Callable[[str], str], place: str) -> Sequence[tuple[int, str]]:
    """The regions as the model reads them; a sentence of no words would have the surprisal 0."""
    changed = [(number, change(part)) for number, part in parts]
    if not any(part for _, part in changed):
        raise UserError(f"{place}: expected words, got none")
    return changed


def _equal_where_tokens_are(
    words: Sequence[Word], tokens: Sequence[int], known: dict[tuple[int, ...], float]
) -> list[Word]:
    """The words with the surprisals that are known after the same tokens; others become known.

    How a surprisal is rounded depends on what else is in a batch, and would decide between equal ones.
    """
    equal, read = [], 0
    for word in words:
        read += word.num_tokens
        surprisal = known.setdefault((read, *tokens[:read]), word.surprisal)
        equal.append(dataclasses.replace(word, surprisal=surprisal))
    return equal


def _of_regions(parts: Sequence[tuple[int, str]], words: Sequence[Word], metric: str) -> dict[int, float]:
    """The surprisal of each region, in bits, from the words of a sentence."""
    from fairseq_stack.hub.surprisals import regions_of

    bits = {}
    for (number, _), region in zip(parts, regions_of([text for _, text in parts], words), strict=True):
        tokens = max(1, region.num_tokens) if metric == MEAN else 1
        bits[number] = region.surprisal / math.log(2) / tokens
    return bits
