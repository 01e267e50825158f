"""Unlabelled F1 of parses, in a corpus: the spans of all sentences are counted together.

A span is a set of neighbouring words that a node covers, at least two, and counts once however many nodes cover it.
Where tokens are pieces of words, siblings that belong to one word are merged first (Murty et al. 2023, Appendix C).
Pieces that a parse separates stay apart: a span that begins or ends within a word is in no gold parse.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fairseq_stack_preprocess.trees.spans import Span, spans_of_attachments

PUNCTUATION_TAGS = frozenset({",", ":", "``", "''", "."})
"""The tags of words that EVALB deletes (``COLLINS.prm``); it keeps brackets."""


@dataclass(frozen=True)
class SpanCounts:
    """How many spans two parses have.

    Attributes:
        matched: spans of both.
        predicted: spans of the predicted parse.
        gold: spans of the gold parse.
    """

    matched: int
    predicted: int
    gold: int

    @property
    def f1(self) -> float:
        """Twice the matched spans over all spans: precision and recall, if both parses are one binary tree."""
        both = self.predicted + self.gold
        return 2 * self.matched / both if both else 1.0


def span_counts(
    predicted: Sequence[int],
    gold: Sequence[int],
    *,
    word_of: Sequence[int] | None = None,
    left_out: Sequence[bool] | None = None,
    with_sentence: bool = True,
) -> SpanCounts:
    """The spans of two parses of a sentence.

    Args:
        predicted: the attachments r_1, ..., r_n.
        gold: likewise.
        word_of: the number of the word that each token belongs to; None if tokens are words.
        left_out: for each token, whether it is deleted before spans are taken, as EVALB deletes punctuation.
        with_sentence: whether the span of the whole sentence counts, which is in every tree.
    """
    words = range(len(gold)) if word_of is None else word_of
    deleted = left_out or [False] * len(gold)
    parses = [_spans(spans_of_attachments(parse), words, deleted) for parse in (predicted, gold)]
    if not with_sentence:
        parses = [spans - {(1, len(gold) - sum(deleted))} for spans in parses]
    first, second = parses
    return SpanCounts(len(first & second), len(first), len(second))


def _spans(nodes: Iterable[Span], word_of: Sequence[int], left_out: Sequence[bool]) -> set[Span]:
    """The spans of at least two words over the tokens that are not left out."""
    kept = [0]
    for is_left_out in left_out:
        kept.append(kept[-1] + (not is_left_out))
    words = [word for word, is_left_out in zip(word_of, left_out, strict=True) if not is_left_out]
    spans = ((kept[first - 1] + 1, kept[last]) for first, last in nodes)
    return {(first, last) for first, last in spans if first < last and words[first - 1] != words[last - 1]}
