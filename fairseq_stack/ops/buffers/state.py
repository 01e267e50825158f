"""The input buffer one step at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from .._arguments import Sizes, computation_dtype, without_autocast
from .._states import BatchState, check_fits_state
from .._undefined import finite
from ._marks import marks_of_input
from .pytorch import input_buffer_pytorch


@dataclass(frozen=True, eq=False)
class InputBufferState(BatchState):
    """The input buffers of a batch. Immutable.

    Attributes:
        items: (B, n, m), of which the first is at the front; at least float32.
        popped: (B,), the strength that has been popped, in float64.
    """

    items: Tensor
    popped: Tensor

    @classmethod
    def initial(cls, items: Tensor) -> InputBufferState:
        """The state before the first step.

        Args:
            items: (B, n, m).

        Raises:
            ValueError: if ``items`` is not such a tensor.
        """
        Sizes().check("items", items, "B n m")
        return cls(items.to(computation_dtype(items.dtype)), items.new_zeros(items.size(0), dtype=torch.float64))

    def step(self, pop: Tensor) -> tuple[Tensor, InputBufferState]:
        """Pop from the front, then read it (Section 2.3 of Hao et al., 2018).

        Args:
            pop: (B,), the strength i_{t-1}. Pop 0 to read the first item.

        Returns:
            The input x_t (B, m) in the dtype of the pops, and the state after the step.

        Raises:
            ValueError: if the shape, dtype or device of ``pop`` does not fit the state.
        """
        Sizes().check("pop", pop, f"{self.items.size(0)}")
        check_fits_state("pop", pop, self.items)
        popped = self.popped + pop.double()
        position = popped.unsqueeze(1)
        with without_autocast(pop.device):
            x = input_buffer_pytorch(finite(position), finite(self.items)) + marks_of_input(position, self.items)
        return x.squeeze(1).to(pop.dtype), replace(self, popped=popped)
