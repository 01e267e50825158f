"""The superposition stack one step at a time."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from .._arguments import Sizes, computation_dtype
from .._states import check_fits_state, check_index
from .._undefined import finite, marks_of


@dataclass(frozen=True, eq=False)
class SuperpositionStackState:
    """The stacks V_t of a batch after t steps. Immutable; autograd and ``torch.func`` transform its steps.

    Attributes:
        elements: (B, t, m), the elements from the top down, at least float32; everything below them is 0.
        marks: (B, m), added to all further readings: NaN for the components in which a pushed vector is not finite,
            and for all components if an action is not finite; otherwise 0. The elements have 0 in its place.
    """

    elements: Tensor
    marks: Tensor

    @classmethod
    def initial(
        cls,
        *,
        batch_size: int,
        size: int,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> SuperpositionStackState:
        """The state before the first step, V_0 = [0].

        Args:
            batch_size: B.
            size: m, the size of the pushed vectors.
            dtype: the dtype of the steps' inputs (default: torch's default dtype).
            device: the device of the steps' inputs (default: torch's default device).
        """
        dtype = computation_dtype(dtype or torch.get_default_dtype())
        marks = torch.zeros(batch_size, size, dtype=dtype, device=device)
        return cls(marks.new_zeros(batch_size, 0, size), marks)

    def step(self, actions: Tensor, value: Tensor) -> tuple[Tensor, SuperpositionStackState]:
        """Take one step (Eqs. 5-8 of DuSell and Chiang, 2024).

        Args:
            actions: (B, 3), the weights of push, no-op and pop.
            value: (B, m), the vector that push pushes.

        Returns:
            The reading (B, m) in the dtype of ``value``, and the state after the step.

        Raises:
            ValueError: if a shape, dtype or device does not fit the state or the other argument.
        """
        batch_size, _, size = self.elements.shape
        sizes = Sizes()
        sizes.check("actions", actions, f"{batch_size} 3")
        sizes.check("value", value, f"{batch_size} {size}")
        check_fits_state("actions", actions, self.elements)
        dtype = self.elements.dtype
        marks = self.marks + marks_of(value, actions)
        push, noop, pop = finite(actions.to(dtype))[:, :, None, None].unbind(1)
        above = torch.cat([finite(value.to(dtype)).unsqueeze(1), self.elements], dim=1)
        at_and_below = pad(self.elements, (0, 0, 0, 2))
        elements = push * above + noop * at_and_below[:, :-1] + pop * at_and_below[:, 1:]
        return (elements[:, 0] + marks).to(value.dtype), SuperpositionStackState(elements, marks)

    def reorder(self, index: Tensor) -> SuperpositionStackState:
        """The state whose batch row i is this state's row ``index[i]``, for beam search.

        Args:
            index: (B',), a LongTensor; rows may be left out, repeated and permuted.

        Raises:
            ValueError: if ``index`` is not a one-dimensional LongTensor of row numbers on the state's device.
        """
        check_index(index, self.elements, len(self.elements))
        return SuperpositionStackState(self.elements.index_select(0, index), self.marks.index_select(0, index))

    def detach(self) -> SuperpositionStackState:
        """The same stacks, through which no gradients flow to the steps before, for truncated back-propagation."""
        return SuperpositionStackState(self.elements.detach(), self.marks.detach())
