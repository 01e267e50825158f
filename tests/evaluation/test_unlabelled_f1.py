"""Unlabelled F1: the counts of spans, with and without the sentence and punctuation."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import astuple
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack.evaluation.unlabelled_f1 import SpanCounts, span_counts
from fairseq_stack_preprocess.trees.spans import attachments

LEFT = [1, 1, 2, 3]


def from_brackets(tree: str, words: int) -> list[int]:
    """The attachments of a binary tree such as ``((The dog) (is happy))``, in which a word is no bracket."""
    place, starts, spans = count(1), [], []
    last = 0
    for part in tree.replace("(", "( ").replace(")", " )").split():
        if part == "(":
            starts.append(last + 1)
        elif part == ")":
            spans.append((starts.pop(), last))
        else:
            last = next(place)
    assert last == words and len(spans) == words - 1
    return attachments(spans, words)


def total(counts: Iterable[SpanCounts]) -> SpanCounts:
    return SpanCounts(*map(sum, zip(*map(astuple, counts), strict=True)))


def counts_of(predicted: list[list[int]], trees: list[dict[str, Any]], punctuation: set[str]) -> dict[str, list[float]]:
    pairs = [(parse, tree["attachments"][1:-1]) for parse, tree in zip(predicted, trees, strict=True)]
    marks = [[token in punctuation for token in tree["tokens"][1:-1]] for tree in trees]
    of_all = {
        "micro": total(span_counts(*pair) for pair in pairs),
        "micro_without_root": total(span_counts(*pair, with_sentence=False) for pair in pairs),
        "micro_without_punctuation": total(
            span_counts(*pair, left_out=left_out) for pair, left_out in zip(pairs, marks, strict=True)
        ),
    }
    return {name: [counts.matched, counts.predicted, counts.gold, counts.f1] for name, counts in of_all.items()}


@pytest.mark.parametrize("name", ["right", "left", "random"])
def test_golden_baselines(name: str, reference_data: Path) -> None:
    folder = reference_data / "golden" / "pushdown"
    golden = json.loads((folder / "f1.json").read_text(encoding="utf-8"))
    trees = [json.loads(line) for line in (folder / "trees_dickens.jsonl").read_text(encoding="utf-8").splitlines()]
    baseline = golden["baselines"][name]
    lengths = [len(tree["tokens"]) - 2 for tree in trees]
    if name == "random":
        predicted = [from_brackets(*pair) for pair in zip(baseline["predictions"], lengths, strict=True)]
    elif name == "right":
        predicted = [[*range(1, n), 1] for n in lengths]
    else:
        predicted = [[1, *range(1, n)] for n in lengths]
    for measure, actual in counts_of(predicted, trees, set(golden["punctuation"])).items():
        assert actual == [*baseline[measure][:3], pytest.approx(baseline[measure][3], rel=1e-12)]


def test_a_span_counts_once_when_punctuation_is_deleted() -> None:
    """((a b) .) and (a (b .)) are both (a b)."""
    left, right = [1, 1, 2], [1, 2, 1]
    assert span_counts(left, right, left_out=[False, False, True]) == SpanCounts(1, 1, 1)
    without = span_counts(left, right, left_out=[False, False, True], with_sentence=False)
    assert without == SpanCounts(0, 0, 0) and without.f1 == 1


def pieces_counts(predicted: str, gold: str, word_of: list[int], **options: Any) -> SpanCounts:
    parses = (from_brackets(tree, len(word_of)) for tree in (predicted, gold))
    return span_counts(*parses, word_of=word_of, **options)


def test_sibling_pieces_of_a_word_are_merged() -> None:
    """Murty et al. (2023), Appendix C: (ab (ra (ca dabra))) is one word, in whatever shape."""
    gold = "(the (((a b) c) sleeps))"
    assert pieces_counts("(the ((a (b c)) sleeps))", gold, [0, 1, 1, 1, 2]) == SpanCounts(2, 2, 2)
    assert pieces_counts("((the ((a b) c)) sleeps)", gold, [0, 1, 1, 1, 2]) == SpanCounts(1, 2, 2)
    assert pieces_counts("((a b) c)", "(a (b c))", [0, 0, 0]) == SpanCounts(0, 0, 0)


def test_pieces_that_a_parse_separates_stay_apart() -> None:
    """((the a) (b sleeps)): two spans that begin or end within a word, and the sentence."""
    word_of = [0, 1, 1, 2]
    separated, gold = "((the a) (b sleeps))", "(the ((a b) sleeps))"
    assert pieces_counts(separated, gold, word_of) == SpanCounts(1, 3, 2)
    assert pieces_counts(separated, gold, word_of, with_sentence=False) == SpanCounts(0, 2, 1)


def test_a_word_of_pieces_is_no_span_when_its_punctuation_is_deleted() -> None:
    counts = pieces_counts("(x ((a b) .))", "((x (a b)) .)", [0, 1, 1, 2], left_out=[False, False, False, True])
    assert counts == SpanCounts(1, 1, 1)


def test_parses_that_are_no_tree_have_fewer_spans() -> None:
    counts = span_counts([1, 1, 3, 3], LEFT)
    assert counts == SpanCounts(1, 2, 3) and counts.f1 == pytest.approx(0.4)
