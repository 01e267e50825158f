"""What the states of stacks and queues share that hold items with strengths."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from ._arguments import Sizes, computation_dtype, without_autocast
from ._states import BatchState, check_fits_state
from ._undefined import finite, marks_of


@dataclass(frozen=True, eq=False)
class ItemState(BatchState, ABC):
    """The stacks or queues of a batch after t steps. Immutable; autograd and ``torch.func`` transform its steps.

    Training through n steps takes O(n^2 m) memory.

    Attributes:
        cumulative_strengths: (B, t), strength of item i and of all items that are popped before it, in float64: they
            are sums over all steps.
        values: the items in the order in which they were pushed, (B, t, m); at least float32.
        marks: (B, m), added to all further readings: NaN for the components in which an item is not finite, and for
            all components if a strength is not finite; otherwise 0. The items have 0 in its place.
    """

    cumulative_strengths: Tensor
    values: Tensor
    marks: Tensor

    @staticmethod
    @abstractmethod
    def _after(strengths: Tensor, pop: Tensor, push: Tensor) -> Tensor:
        """The cumulative strengths (B, t) from those before the step (B, t - 1), and u_t and d_t, (B, 1)."""

    @staticmethod
    @abstractmethod
    def _weights(readable: Tensor) -> Tensor:
        """How much of each item is read, (B, t), from the cumulative strengths up to 1."""

    @classmethod
    def initial(
        cls,
        *,
        batch_size: int,
        size: int,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> Self:
        """The state before the first step: no items.

        Args:
            batch_size: B.
            size: m, the size of the pushed vectors.
            dtype: the dtype of the steps' inputs (default: torch's default dtype).
            device: the device of the steps' inputs (default: torch's default device).
        """
        dtype = computation_dtype(dtype or torch.get_default_dtype())
        marks = torch.zeros(batch_size, size, dtype=dtype, device=device)
        strengths, values = marks.new_zeros(batch_size, 0, dtype=torch.float64), marks.new_zeros(batch_size, 0, size)
        return cls(strengths, values, marks)

    def step(self, pop: Tensor, push: Tensor, value: Tensor) -> tuple[Tensor, Self]:
        """Pop, push and read the strength 1 (Sections 2.1 and 2.3 of Hao et al., 2018).

        Args:
            pop: (B,), the strengths u_t.
            push: (B,), the strengths d_t.
            value: (B, m), the vectors v_t.

        Returns:
            The reading (B, m) in the dtype of ``value``, and the state after the step.

        Raises:
            ValueError: if a shape, dtype or device does not fit the state or the other arguments.
        """
        batch_size, size = self.marks.shape
        sizes = Sizes()
        sizes.check("pop", pop, f"{batch_size}")
        sizes.check("push", push, f"{batch_size}")
        sizes.check("value", value, f"{batch_size} {size}")
        check_fits_state("pop", pop, self.marks)
        marks = self.marks + marks_of(value, pop, push)
        popped, pushed = (finite(x).double().unsqueeze(1) for x in (pop, push))
        strengths = self._after(self.cumulative_strengths, popped, pushed)
        values = torch.cat([self.values, finite(value).to(self.values.dtype).unsqueeze(1)], 1)
        weights = self._weights(strengths.clamp(max=1)).to(values.dtype)
        with without_autocast(values.device):
            reading = torch.bmm(weights.unsqueeze(1), values).squeeze(1)
        return (reading + marks).to(value.dtype), type(self)(strengths, values, marks)
