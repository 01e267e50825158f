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
        resampled_sums, resampled_counts = self._resampled((sums, counts), self._generator(stream))
        return self._estimate(math.fsum(sums) / sum(counts), resampled_sums / resampled_counts)

    def of_mean_of_groups(self, groups: Sequence[Sequence[float]], stream: int) -> Estimate:
        """The estimate of the mean over groups of the mean of each, which draws within each group.

        Args:
            groups: for each group a number for each of its strings.
            stream: as for :meth:`of_rate`.
        """
        generator = self._generator(stream)
        means = [math.fsum(group) / len(group) for group in groups]
        resampled = sum(self._resampled((group,), generator)[0] / len(group) for group in groups)
        return self._estimate(math.fsum(means) / len(groups), resampled / len(groups))

    def of_statistic(self, statistic: Callable[[Columns], float], columns: Columns, stream: int) -> Estimate:
        """The estimate of a statistic of N examples, which draws them with replacement.

        Args:
            statistic: of columns with an entry for each example.
            columns: each (N,).
            stream: as for :meth:`of_rate`.
        """
        generator = self._generator(stream)
        draws = (generator.integers(len(columns[0]), size=len(columns[0])) for _ in range(self.number))
        values = [statistic([column[drawn] for column in columns]) for drawn in draws]
        return self._estimate(statistic(columns), values)

    def _generator(self, stream: int) -> Any:
        import numpy as np  # not as long as a command only reads its arguments

        return np.random.default_rng((self.seed, stream))

    def _resampled(self, columns: Sequence[Sequence[float]], generator: Any) -> list[Any]:
        """The sum of each column (N,) over each resampled set, (number,)."""
        import numpy as np

        size, arrays = len(columns[0]), [np.asarray(column) for column in columns]
        parts = []
        for done in range(0, self.number, step := max(1, INDICES_AT_ONCE // size)):
            drawn = generator.integers(size, size=(min(step, self.number - done), size))
            parts.append([values[drawn].sum(1) for values in arrays])
        return [np.concatenate(of_column) for of_column in zip(*parts, strict=True)]

    def _estimate(self, value: float, resampled: Any) -> Estimate:
        import numpy as np

        tail = (1 - self.confidence) / 2
        low, high = np.quantile(resampled, [tail, 1 - tail])
        return Estimate(value, float(low), float(high))
