"""Question formation and tense reinflection: deciding words, and scores of pairs from those of answers."""

from __future__ import annotations

import math
from typing import NamedTuple

import pytest

from fairseq_stack.evaluation.intervals import Intervals
from fairseq_stack.evaluation.transformation_pairs import DecidingWord, deciding_word
from fairseq_stack.evaluation.transformations import scored_pair, transformation_scores
from fairseq_stack_preprocess.transformations.tasks import QUESTION_FORMATION, TENSE_REINFLECTION, Pair

QUESTION = Pair(
    source=("my", "yak", "that", "does", "smile", "doesn't", "giggle", ".", "quest"),
    target=("doesn't", "my", "yak", "that", "does", "smile", "giggle", "?"),
    linear=("does", "my", "yak", "that", "smile", "doesn't", "giggle", "?"),
    structure=("RSi", "I"),
)
STATEMENT = Pair(
    ("my", "yak", "does", "smile", ".", "decl"), *2 * (("my", "yak", "does", "smile", "."),), ("simple", "I")
)


class Score(NamedTuple):
    log_probabilities: list[float]
    is_best: list[bool]
    rivals: list[float]


def test_deciding_words() -> None:
    assert deciding_word(QUESTION_FORMATION, STATEMENT) is None
    assert deciding_word(QUESTION_FORMATION, QUESTION) == DecidingWord(0, ("does", "doesn't", "do", "don't"))
    for subject, target, place, rivals in (
        ("PP", "my yak by the newts reads .", 5, ("reads", "read")),
        ("RO", "my yaks that the newt admires high_five her zebra .", 6, ("high_fives", "high_five")),
        ("RSt", "my yaks who admire the newt read .", 6, ("reads", "read")),
        ("simple", "my yaks admire the newt that waits .", 2, ("admires", "admire")),
    ):
        words = tuple(target.split())
        pair = Pair(("PRESENT",), words, words, (subject, "I"))
        assert deciding_word(TENSE_REINFLECTION, pair) == DecidingWord(place, rivals)


def test_scores() -> None:
    """Three pairs: one that is right, one whose first word is the linear one, and one on which the rules agree."""
    word = deciding_word(QUESTION_FORMATION, QUESTION)
    best, not_best = [True] * 9, [False] + [True] * 8
    right = Score([-0.5] + [0.0] * 8, best, [-1.0, -0.5, -9.0, -9.0])
    wrong = Score([-2.0] + [0.0] * 8, not_best, [-1.0, -2.0, -9.0, -9.0])
    linear = Score([-1.0] + [0.0] * 8, best, [])
    same = Score([-0.5] * 6, [True] * 6, [])
    scored = [
        scored_pair(QUESTION, word, right, linear._replace(is_best=not_best)),
        scored_pair(QUESTION, word, wrong, linear),
        scored_pair(STATEMENT, None, same, same),
    ]
    overall, (simple, relative) = transformation_scores(scored, Intervals(50, 0.9, 0))
    assert (overall.pairs, overall.transformed, overall.differing) == (3, 2, 2)
    assert (simple.subject, simple.pairs, relative.subject, relative.pairs) == ("simple", 1, "RSi", 2)
    values = {name: getattr(score, "value", score) for name, score in vars(overall).items()}
    assert values == values | {
        "full_sentence": pytest.approx(2 / 3),
        "linear_answer": pytest.approx(2 / 3),
        "deciding_word": 0.5,
        "restricted": 0.5,
        "probability": pytest.approx((math.exp(-0.5) + math.exp(-2)) / 2),
        "conditional_probability": pytest.approx((math.exp(-0.5) + math.exp(-2) + math.exp(-3)) / 3),
        "cross_entropy": pytest.approx(5.5 / 24),
        "log_ratio": pytest.approx((0.5 - 1) / 2),
        "prefers_target": 0.5,
    }
    assert simple.deciding_word is simple.restricted is simple.probability is simple.log_ratio is None
    assert relative.cross_entropy.value == pytest.approx(2.5 / 18)
