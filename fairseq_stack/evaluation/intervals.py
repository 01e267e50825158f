"""Confidence intervals of rates, by the bootstrap over strings."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .results import Estimate

INDICES_AT_ONCE = 2_000_000
"""How many resampled strings are summed together at most."""


@dataclass(frozen=True)
class Intervals:
    """How confidence intervals are made: by the percentile bootstrap, which draws as many strings with replacement.

    Attributes:
        number: number of sets that are drawn.
        confidence: the probability of an interval, in (0, 1).
        seed: of the random numbers.
    """

    number: int
    confidence: float
    seed: int

    def of_rate(self, sums: NDArray[np.float64], counts: NDArray[np.int64], stream: int) -> Estimate:
        """The estimate of ``sum(sums) / sum(counts)``, where a string has one of each.

        Args:
            sums: (N,).
            counts: (N,).
            stream: a number for this estimate alone, since each estimate has random numbers of its own.
        """
        generator = np.random.default_rng((self.seed, stream))
        parts = []
        for done in range(0, self.number, step := max(1, INDICES_AT_ONCE // len(sums))):
            drawn = generator.integers(len(sums), size=(min(step, self.number - done), len(sums)))
            parts.append(sums[drawn].sum(1) / counts[drawn].sum(1))
        tail = (1 - self.confidence) / 2
        low, high = np.quantile(np.concatenate(parts), [tail, 1 - tail])
        return Estimate(math.fsum(sums) / int(counts.sum()), float(low), float(high))
