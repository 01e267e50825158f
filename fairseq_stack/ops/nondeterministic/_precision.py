"""Whether float64 is precise enough for the steps of an incremental state in PyTorch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from ._log_weights import EXACT_RANGE, LOWEST_LOG

if TYPE_CHECKING:
    from ._columns import Step

LOWEST_POWER = -1000.0  # of products; smaller ones could be lost


class Spread(NamedTuple):
    """The log weights of a step."""

    range: Tensor  # how far they are apart, except those that are -inf, (B,)
    masked: Tensor  # whether some are -inf, (B,)


def spread_of(relative: Tensor) -> Spread:
    """The spread of log weights (B, ..., ...) less the largest of their step."""
    relative = relative.detach().flatten(1)
    masked = relative == -torch.inf
    return Spread(-torch.where(masked, 0, relative).amin(1), masked.any(1))


@dataclass(frozen=True, eq=False)
class Precision:
    """Whether float64 has been precise enough for each of B sequences, in all steps so far.

    It is if the log weights of all steps are finite and at most ``EXACT_RANGE`` apart. Otherwise it is if no product
    can have been lost because it is small.

    Attributes:
        careful: whether there were other log weights, (B,).
        lowest: the logarithm to base 2 of the smallest mantissa except 0, (B,).
        is_enough: (B,).
    """

    careful: Tensor
    lowest: Tensor
    is_enough: Tensor

    @classmethod
    def of_start(cls, alpha: Tensor, spread: Spread) -> Precision:
        """That of column 0, for alpha[0] (B, C)."""
        return cls(spread.range > EXACT_RANGE, lowest_power(alpha), spread.range <= -LOWEST_LOG)

    def after(self, step: Step) -> Precision:
        """With one more step."""
        spread = step.spread
        careful = self.careful | spread.masked | (spread.range > EXACT_RANGE)
        lowest = torch.minimum(self.lowest, step.lowest)
        power = lowest + torch.minimum(lowest, -spread.range / math.log(2)) + step.column.deepest
        is_lost = (power < LOWEST_POWER) | step.top.is_lost | (spread.range > -LOWEST_LOG)
        return Precision(careful, lowest, self.is_enough & ~(careful & is_lost))

    def select(self, index: Tensor) -> Precision:
        """The same for these batch rows, (B',)."""
        return Precision(self.careful[index], self.lowest[index], self.is_enough[index])


def lowest_power(x: Tensor) -> Tensor:
    """The logarithm to base 2 of the smallest number of each batch row of mantissas (B, ...) except 0; 0 at most."""
    x = x.detach().flatten(1)
    return pad(torch.where(x > 0, x, 1), (0, 1), value=1).amin(1).log2()
