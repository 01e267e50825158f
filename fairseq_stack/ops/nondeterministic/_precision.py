"""Whether float64 is precise enough for the steps of an incremental state in PyTorch."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .._states import Rows
from ._columns import Step, lowest_power
from ._log_weights import EXACT_RANGE, LOWEST_LOG, Spread

LOWEST_POWER = -1000.0  # of products; smaller ones could be lost


@dataclass(frozen=True, eq=False)
class Precision(Rows):
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
