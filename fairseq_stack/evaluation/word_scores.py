"""Scores of a language model, from the output of ``fairseq-eval-lm --output-word-probs``."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairseq_stack.errors import UserError
from fairseq_stack.files import read_text

from .scores import Score, own_method

# After what logging puts before a message: "... | INFO | fairseq_cli.eval_lm | " or "INFO:fairseq_cli.eval_lm:".
_SENTENCE = re.compile(r"(?:^|\| |:)(\d+) (\S+ \[[^]\t]+\](?:\t\S+ \[[^]\t]+\])*)\s*$")
_WORD = re.compile(r"\S+ \[([^]\t]+)\]")

UNIT = "nats a token"


@dataclass(frozen=True)
class SentenceScore:
    """How well a model predicts a sentence.

    Attributes:
        tokens: number of tokens, the end of sentence included.
        loss: negative log-probability of the sentence and its end, in nats.
    """

    tokens: int
    loss: float


def read_word_scores(path: Path) -> list[SentenceScore]:
    """The score of each sentence, in the order of the data set.

    Raises:
        UserError: there is no sentence, or some are missing (fairseq-eval-lm leaves out sentences that are too long).
    """
    scores: dict[int, SentenceScore] = {}
    for line in read_text(path).splitlines():
        found = _SENTENCE.search(line)
        if found is not None:
            words = [float(word) for word in _WORD.findall(found.group(2))]
            scores[int(found.group(1))] = SentenceScore(len(words), -math.fsum(words))
    if not scores or max(scores) != len(scores) - 1:
        raise UserError(f"{path}: word scores of {len(scores)} sentences, expected the scores of sentences 0, 1, ...")
    return [scores[number] for number in range(len(scores))]


def cross_entropy(scores: Sequence[SentenceScore], data: str) -> Score:
    """Nats a token, where the end of sentence counts as a token; ``data`` names the sentences."""
    value = math.fsum(score.loss for score in scores) / _tokens(scores)
    return Score("cross-entropy", value, UNIT, data, _method(scores))


def excess(scores: Sequence[SentenceScore], bounds: Sequence[float], data: str) -> Score:
    """The cross-entropy difference: nats a token above what the source of the sentences itself would give.

    Args:
        scores: a model's scores.
        bounds: for each sentence -log p(sentence) under the distribution it was drawn from, in nats.
        data: a name of the sentences.
    """
    method = _method(scores, bound=f"{math.fsum(bounds) / _tokens(scores):.4f}")
    return Score("cross-entropy difference", _excess(scores, bounds), UNIT, data, method)


def excess_by_length(scores: Sequence[SentenceScore], bounds: Sequence[float]) -> dict[int, float]:
    """The value of :func:`excess` for each length (without the end of sentence), by ascending length."""
    groups: dict[int, list[tuple[SentenceScore, float]]] = {}
    for score, bound in zip(scores, bounds, strict=True):
        groups.setdefault(score.tokens - 1, []).append((score, bound))
    return {
        length: _excess([score for score, _ in members], [bound for _, bound in members])
        for length, members in sorted(groups.items())
    }


def _excess(scores: Sequence[SentenceScore], bounds: Sequence[float]) -> float:
    differences = (score.loss - bound for score, bound in zip(scores, bounds, strict=True))
    return math.fsum(differences) / _tokens(scores)


def _tokens(scores: Sequence[SentenceScore]) -> int:
    return sum(score.tokens for score in scores)


def _method(scores: Sequence[SentenceScore], **options: object) -> str:
    return own_method(sentences=len(scores), tokens=_tokens(scores), eos="counted", **options)
