"""The stratification stack one step at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from .._arguments import Sizes, computation_dtype
from .._native import library
from .._states import check_fits_state, check_index
from .._transforms import is_transformed
from .._undefined import finite, marks_of
from ._step import Items, advance, take_step


@dataclass(frozen=True, eq=False)
class StratificationStackState:
    """The stacks of a batch after t steps. Immutable; autograd and ``torch.func`` transform its steps.

    On the CPU a step runs on the compiled kernels, unless ``torch.func`` transforms it. For autograd it is then one
    function, as it is on other devices: n steps take O(n^2 + n m) memory.

    Attributes:
        cumulative_strengths: (B, t), H_t[i] = strength of item i and of all items above it; at least float32.
        items: the items, in the same dtype.
        marks: (B, m), added to all further readings: NaN for the components in which an item is not finite, and for
            all components if a strength is not finite; otherwise 0. The items have 0 in its place. None where all is
            finite.
    """

    cumulative_strengths: Tensor
    items: Items
    marks: Tensor | None = None

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
        return cls(values.new_zeros(batch_size, 0), Items(values))

    @property
    def values(self) -> Tensor:
        """The items from the bottom up, (B, t, m)."""
        return self.items.vectors()

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
        batch_size, _, size = self.items.settled.shape
        sizes = Sizes()
        sizes.check("pop", pop, f"{batch_size}")
        sizes.check("push", push, f"{batch_size}")
        sizes.check("value", value, f"{batch_size} {size}")
        check_fits_state("pop", pop, self.items.settled)
        dtype = self.items.settled.dtype
        inputs = pop.to(dtype), push.to(dtype), value.to(dtype)
        plain = self._is_plain(*inputs)
        native = not plain and self.items.settled.device.type == "cpu" and library() is not None
        if self.marks is None and native:
            reading, state, is_finite = self._followed(*inputs, native)
            if is_finite:
                return reading.to(value.dtype), state
        marks = marks_of(value, pop, push) + (0 if self.marks is None else self.marks)
        inputs = finite(inputs[0]), finite(inputs[1]), finite(inputs[2])
        reading, state, *_ = self._plain(*inputs) if plain else self._followed(*inputs, native)
        return (reading + marks).to(value.dtype), replace(state, marks=marks)

    def reorder(self, index: Tensor) -> StratificationStackState:
        """The state whose batch row i is this state's row ``index[i]``, for beam search.

        Args:
            index: (B',), a LongTensor; rows may be left out, repeated and permuted.

        Raises:
            ValueError: if ``index`` is not a one-dimensional LongTensor of row numbers on the state's device.
        """
        held = self.items.settled
        check_index(index, held, len(held))
        marks = None if self.marks is None else self.marks.index_select(0, index)
        return StratificationStackState(
            self.cumulative_strengths.index_select(0, index), self.items.index_select(index), marks
        )

    def detach(self) -> StratificationStackState:
        """The same stack, through which no gradients flow to the steps before, for truncated back-propagation."""
        return replace(self, cumulative_strengths=self.cumulative_strengths.detach(), items=Items(self.values.detach()))

    def _is_plain(self, *inputs: Tensor) -> bool:
        """Whether the step is in plain PyTorch, because it is transformed, or because a step before it was."""
        held = self.items.settled
        return held.requires_grad or torch.compiler.is_compiling() or is_transformed(*inputs, held)

    def _plain(self, pop: Tensor, push: Tensor, value: Tensor) -> tuple[Tensor, StratificationStackState]:
        """The reading, and the state after the step, with all items in one tensor."""
        vectors = torch.cat([self.values, value.unsqueeze(1)], 1)
        reading, strengths = advance(self.cumulative_strengths, pop, push, vectors)
        return reading, replace(self, cumulative_strengths=strengths, items=Items(vectors))

    def _followed(
        self, pop: Tensor, push: Tensor, value: Tensor, native: bool
    ) -> tuple[Tensor, StratificationStackState, bool]:
        """The reading, the state after the step, and whether the kernels found all arguments finite."""
        strengths, items = self.cumulative_strengths, self.items
        reading, strengths, items, is_finite = take_step(strengths, items, pop, push, value, native=native)
        return reading, StratificationStackState(strengths, items, self.marks), is_finite
