"""Scores of a language model, from the output of ``fairseq-eval-lm --output-word-probs``."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairseq_stack.errors import UserError
from fairseq_stack.files import read_text

from .scores import Score, method_of

# After what logging puts before a message: "... | INFO | fairseq_cli.eval_lm | " or "INFO:fairseq_cli.eval_lm:".
_SENTENCE = re.compile(r"(?:^|\| |:)(\d+) (\S+ \[[^]\t]+\](?:\t\S+ \[[^]\t]+\])*)\s*$")
_WORD = re.compile(r"\S+ \[([^]\t]+)\]")

UNIT = "nats per token"


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
        match = _SENTENCE.search(line)
        if match is not None:
            words = [float(word) for word in _WORD.findall(match.group(2))]
            scores[int(match.group(1))] = SentenceScore(len(words), -math.fsum(words))
    if not scores or max(scores) != len(scores) - 1:
        raise UserError(f"{path}: word scores of {len(scores)} sentences, expected the scores of sentences 0, 1, ...")
    return [scores[number] for number in range(len(scores))]


def cross_entropy(scores: Sequence[SentenceScore], data: str) -> Score:
    """Nats per token, where the end of sentence counts as a token; ``data`` names the sentences."""
    tokens = sum(score.tokens for score in scores)
    method = method_of(sentences=len(scores), tokens=tokens, eos="counted")
    return Score("cross-entropy", math.fsum(score.loss for score in scores) / tokens, UNIT, data, method)
