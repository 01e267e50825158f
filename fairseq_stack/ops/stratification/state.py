"""The stratification stack one step at a time."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from .._arguments import Sizes, computation_dtype
from .._states import check_fits_state, check_index
from .._undefined import finite, marks_of


@dataclass(frozen=True, eq=False)
class StratificationStackState:
    """The stacks of a batch after t steps. Immutable; autograd and ``torch.func`` transform its steps.

    Attributes:
        cumulative_strengths: (B, t), H_t[i] = strength of item i and of all items above it; at least float32.
        values: (B, t, m), the items from the bottom up, in the same dtype.
        marks: (B, m), added to all further readings: NaN for the components in which an item is not finite, and for
            all components if a strength is not finite; otherwise 0. ``values`` has 0 in its place.
    """

    cumulative_strengths: Tensor
    values: Tensor
    marks: Tensor

    @classmethod
    def initial(
        cls,
        *,
        batch_size: int,
        size: int,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> StratificationStackState:
        """The state before the first step: no items.

        Args:
            batch_size: B.
            size: m, the size of the pushed vectors.
            dtype: the dtype of the steps' inputs (default: torch's default dtype).
            device: the device of the steps' inputs (default: torch's default device).
        """
        dtype = computation_dtype(dtype or torch.get_default_dtype())
        values = torch.zeros(batch_size, 0, size, dtype=dtype, device=device)
        return cls(values.new_zeros(batch_size, 0), values, values.new_zeros(batch_size, size))

    def step(self, pop: Tensor, push: Tensor, value: Tensor) -> tuple[Tensor, StratificationStackState]:
        """Pop, push and read once (Section 2.1 of Hao et al., 2018).

        Args:
            pop: (B,), the strengths u_t.
            push: (B,), the strengths d_t.
            value: (B, m), the vectors v_t.

        Returns:
            The reading (B, m) in the dtype of ``value``, and the state after the step.

        Raises:
            ValueError: if a shape, dtype or device does not fit the state or the other arguments.
        """
        batch_size, _, size = self.values.shape
        sizes = Sizes()
        sizes.check("pop", pop, f"{batch_size}")
        sizes.check("push", push, f"{batch_size}")
        sizes.check("value", value, f"{batch_size} {size}")
        check_fits_state("pop", pop, self.values)
        dtype = self.values.dtype
        with torch.autocast(value.device.type, enabled=False):
            left = torch.relu(self.cumulative_strengths - finite(pop.to(dtype)).unsqueeze(1))
            strengths = pad(left, (0, 1)) + finite(push.to(dtype)).unsqueeze(1)
            values = torch.cat([self.values, finite(value.to(dtype)).unsqueeze(1)], dim=1)
            readable = strengths.clamp(max=1)
            weights = readable - pad(readable[:, 1:], (0, 1))
            marks = self.marks + marks_of(value, pop, push)
            reading = torch.bmm(weights.unsqueeze(1), values).squeeze(1) + marks
        return reading.to(value.dtype), StratificationStackState(strengths, values, marks)

    def reorder(self, index: Tensor) -> StratificationStackState:
        """The state whose batch row i is this state's row ``index[i]``, for beam search.

        Args:
            index: (B',), a LongTensor; rows may be left out, repeated and permuted.

        Raises:
            ValueError: if ``index`` is not a one-dimensional LongTensor of row numbers on the state's device.
        """
        check_index(index, self.values, len(self.values))
        return StratificationStackState(
            self.cumulative_strengths.index_select(0, index),
            self.values.index_select(0, index),
            self.marks.index_select(0, index),
        )

    def detach(self) -> StratificationStackState:
        """The same stack, through which no gradients flow to the steps before, for truncated back-propagation."""
        return StratificationStackState(self.cumulative_strengths.detach(), self.values.detach(), self.marks)
