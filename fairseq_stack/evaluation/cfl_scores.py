"""The scores of a language model on strings of a formal language, from the log-probabilities of their symbols."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .cfl_result import LengthScores, StringScores
from .intervals import Intervals


@dataclass(frozen=True)
class StringLoss:
    """What a string costs a model and the distribution of the strings, in nats.

    Attributes:
        length: number of symbols, without the end.
        tokens: number of symbols that are counted, with the end or without.
        loss: of the model, on these.
        bound: of the distribution; it has the cost of the length.
        bound_given_length: of the distribution given the length.
    """

    length: int
    tokens: int
    loss: float
    bound: float
    bound_given_length: float


def string_losses(
    log_probabilities: Sequence[Sequence[float]],
    bounds: Sequence[float],
    bounds_given_length: Sequence[float],
    *,
    eos: bool,
) -> list[StringLoss]:
    """The losses of strings.

    Args:
        log_probabilities: for each string of n symbols the model's log-probabilities of these and the end, (n + 1,).
        bounds: for each string -log p(string).
        bounds_given_length: for each string -log p(string | its length).
        eos: whether the ends of strings are counted.
    """
    losses = []
    for values, *of_string in zip(log_probabilities, bounds, bounds_given_length, strict=True):
        length = len(values) - 1
        tokens = length + eos
        losses.append(StringLoss(length, tokens, -math.fsum(values[:tokens]), *of_string))
    return losses


def overall_scores(strings: Sequence[StringLoss], intervals: Intervals) -> StringScores:
    """The scores on all strings; the bound has the cost of the length."""
    return _scores(strings, [string.bound for string in strings], intervals, stream=0)


def scores_by_length(strings: Sequence[StringLoss], intervals: Intervals) -> tuple[LengthScores, ...]:
    """The scores for each length, ascending; the bound is given the length."""
    by_length: dict[int, list[StringLoss]] = {}
    for string in strings:
        by_length.setdefault(string.length, []).append(string)
    return tuple(
        LengthScores(
            **vars(_scores(group, [string.bound_given_length for string in group], intervals, stream=length)),
            length=length,
        )
        for length, group in sorted(by_length.items())
    )


def _scores(strings: Sequence[StringLoss], bounds: Sequence[float], intervals: Intervals, stream: int) -> StringScores:
    tokens, losses = [string.tokens for string in strings], [string.loss for string in strings]
    differences = [loss - bound for loss, bound in zip(losses, bounds, strict=True)]
    return StringScores(
        strings=len(strings),
        tokens=sum(tokens),
        cross_entropy=math.fsum(losses) / sum(tokens),
        bound=math.fsum(bounds) / sum(tokens),
        difference=intervals.of_rate(differences, tokens, stream),
    )
