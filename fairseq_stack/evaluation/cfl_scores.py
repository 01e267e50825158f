"""The figures of a language model on strings of a formal language, from the log-probabilities of their symbols."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .cfl_result import LengthScores, NextSymbol, StringScores
from .intervals import Intervals


@dataclass(frozen=True)
class StringLosses:
    """What each of N strings costs a model and the distribution of the strings, in nats.

    Attributes:
        lengths: numbers of symbols, without the end.
        tokens: numbers of symbols that are counted, with the end or without.
        losses: of the model, on these.
        bounds: of the distribution; it has the cost of the length.
        bounds_given_length: of the distribution given the length.
        next_symbol: for each string the positions with one possible symbol, and how many of these the model has right:
            (N, 2); None if it is not known where only one symbol is possible.
    """

    lengths: NDArray[np.int64]
    tokens: NDArray[np.int64]
    losses: NDArray[np.float64]
    bounds: NDArray[np.float64]
    bounds_given_length: NDArray[np.float64]
    next_symbol: NDArray[np.int64] | None


def string_losses(
    log_probabilities: Sequence[NDArray[np.float64]],
    is_best: Sequence[NDArray[np.bool_]],
    bounds: Sequence[float],
    bounds_given_length: Sequence[float],
    determined: Sequence[Sequence[int]] | None,
    *,
    eos: bool,
) -> StringLosses:
    """The losses of strings.

    Args:
        log_probabilities: for each string of n symbols the model's log-probabilities of these and the end, (n + 1,).
        is_best: for each string whether they are the symbols that the model finds most probable, (n + 1,).
        bounds: for each string -log p(string).
        bounds_given_length: for each string -log p(string | its length).
        determined: for each string the positions (0 to n) with one possible symbol, or None.
        eos: whether the ends of strings are counted.
    """
    lengths = np.array([len(values) - 1 for values in log_probabilities])
    tokens = lengths + eos
    counts = None
    if determined is not None:
        counts = np.zeros((len(lengths), 2), dtype=np.int64)
        for string, positions in enumerate(determined):
            counted = [position for position in positions if position < tokens[string]]
            counts[string] = len(counted), is_best[string][counted].sum()
    return StringLosses(
        lengths,
        tokens,
        np.array([-math.fsum(values[:number]) for values, number in zip(log_probabilities, tokens, strict=True)]),
        np.array(bounds),
        np.array(bounds_given_length),
        counts,
    )


def overall_scores(strings: StringLosses, intervals: Intervals) -> StringScores:
    """The figures on all strings; the bound has the cost of the length."""
    return _scores(strings, strings.bounds, np.arange(len(strings.lengths)), intervals, stream=0)


def scores_by_length(strings: StringLosses, intervals: Intervals) -> tuple[LengthScores, ...]:
    """The figures for each length, ascending; the bound is given the length."""
    found = []
    for length in map(int, np.unique(strings.lengths)):
        rows = np.flatnonzero(strings.lengths == length)
        scores = _scores(strings, strings.bounds_given_length, rows, intervals, stream=length)
        found.append(LengthScores(**vars(scores), length=length))
    return tuple(found)


def _scores(
    strings: StringLosses, bounds: NDArray[np.float64], rows: NDArray[np.int64], intervals: Intervals, stream: int
) -> StringScores:
    tokens, losses = strings.tokens[rows], strings.losses[rows]
    number = int(tokens.sum())
    counts = None if strings.next_symbol is None else strings.next_symbol[rows].sum(0).tolist()
    return StringScores(
        strings=len(rows),
        tokens=number,
        cross_entropy=math.fsum(losses) / number,
        bound=math.fsum(bounds[rows]) / number,
        difference=intervals.of_rate(losses - bounds[rows], tokens, stream),
        next_symbol=None if counts is None else NextSymbol(*counts),
    )
