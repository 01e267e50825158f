"""Confidence intervals of rates, by the bootstrap over strings."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from .results import Estimate

Columns: TypeAlias = "Sequence[Any]"
"""NumPy arrays of equal length."""

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

    @property
    def options(self) -> dict[str, object]:
        """What a signature says of them."""
        return {"bootstrap": self.number, "confidence": self.confidence, "seed": self.seed}

    def of_rate(self, sums: Sequence[float], counts: Sequence[int], stream: int) -> Estimate:
        """The estimate of ``sum(sums) / sum(counts)``, where each of N strings has one of each.

        Args:
            sums: (N,).
            counts: (N,).
            stream: a number for this estimate alone, since each estimate has its own random numbers.
        """
        import numpy as np  # not as long as a command only reads its arguments

        of_strings = np.array(sums, dtype=float), np.array(counts)
        generator = np.random.default_rng((self.seed, stream))
        parts = []
        for done in range(0, self.number, step := max(1, INDICES_AT_ONCE // len(sums))):
            drawn = generator.integers(len(sums), size=(min(step, self.number - done), len(sums)))
            resampled_sums, resampled_counts = (values[drawn].sum(1) for values in of_strings)
            parts.append(resampled_sums / resampled_counts)
        tail = (1 - self.confidence) / 2
        low, high = np.quantile(np.concatenate(parts), [tail, 1 - tail])
        return Estimate(math.fsum(sums) / sum(counts), float(low), float(high))

    def of_statistic(self, statistic: Callable[[Columns], float], columns: Columns, stream: int) -> Estimate:
        """The estimate of a statistic of N examples, which draws them with replacement.

        Args:
            statistic: of columns with an entry for each example.
            columns: each (N,).
            stream: as for :meth:`of_rate`.
        """
        import numpy as np

        generator = np.random.default_rng((self.seed, stream))
        draws = (generator.integers(len(columns[0]), size=len(columns[0])) for _ in range(self.number))
        values = [statistic([column[drawn] for column in columns]) for drawn in draws]
        tail = (1 - self.confidence) / 2
        low, high = np.quantile(values, [tail, 1 - tail])
        return Estimate(statistic(columns), float(low), float(high))
