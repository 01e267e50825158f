"""Non-negative reals of any magnitude: a fraction and a power of two, element by element.

Probabilities of long strings leave the range of double precision; logarithms would keep them, but their last
digit depends on the machine. These numbers have the precision of doubles and one right result.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

_DIGITS = Context(prec=34)
_LOG_2 = Decimal(2).ln(_DIGITS)

_FAR_BELOW = -(2**62)
"""The exponent of zero: less than any other, and no overflow when two are added."""


@dataclass(frozen=True)
class Scaled:
    """The numbers ``fraction * 2**exponent``.

    Attributes:
        fraction: float64, in [0.5, 1) or 0.
        exponent: int64 of the same shape; of zeros it means nothing.
    """

    fraction: NDArray[np.float64]
    exponent: NDArray[np.int64]

    @classmethod
    def of(cls, fraction: NDArray[np.float64], exponent: NDArray[np.int64] | int = 0) -> Scaled:
        """The numbers ``fraction * 2**exponent`` for fractions of any magnitude >= 0."""
        normal, shift = np.frexp(fraction)
        return cls(normal, np.where(normal > 0, shift + np.asarray(exponent, np.int64), np.int64(0)))

    @classmethod
    def zeros(cls, *shape: int) -> Scaled:
        """Zeros to be filled in."""
        return cls(np.zeros(shape), np.zeros(shape, np.int64))

    def __getitem__(self, index: Any) -> Scaled:
        return Scaled(self.fraction[index], self.exponent[index])

    def __setitem__(self, index: Any, values: Scaled) -> None:
        self.fraction[index] = values.fraction
        self.exponent[index] = values.exponent

    @property
    def T(self) -> Scaled:
        """The numbers with their axes in reverse order."""
        return Scaled(self.fraction.T, self.exponent.T)

    def __mul__(self, other: Scaled) -> Scaled:
        return Scaled.of(self.fraction * other.fraction, self.exponent + other.exponent)

    def aligned(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Doubles and, for each row (all but the last axis), the power of two that they share.

        The maximum of a row is in [0.5, 1); what is less than it by a factor of 2**1074 becomes 0.
        """
        exponents = np.where(self.fraction > 0, self.exponent, _FAR_BELOW)
        shared = exponents.max(axis=-1, initial=_FAR_BELOW)
        shifts = np.maximum(exponents - shared[..., None], -1100).astype(np.int32)
        return np.ldexp(self.fraction, shifts), np.where(shared == _FAR_BELOW, 0, shared)

    def sum(self) -> Scaled:
        """The sums over the last axis, which is not empty, added from left to right."""
        values, shared = self.aligned()
        # Unlike sum(), cumsum() has one order of addition.
        return Scaled.of(values.cumsum(axis=-1)[..., -1], shared)


def log_of(number: Scaled) -> Decimal:
    """log of a single number > 0, in nats, to more digits than a double has."""
    return _DIGITS.add(
        Decimal(float(number.fraction)).ln(_DIGITS), _DIGITS.multiply(Decimal(int(number.exponent)), _LOG_2)
    )
