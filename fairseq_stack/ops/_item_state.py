"""What the states of stacks and queues share that hold items with strengths."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from types import ModuleType
from typing import ClassVar, Self

import torch
from torch import Tensor

from ._arguments import Sizes, check_read_strength, computation_dtype
from ._item_steps import Items, Step
from ._native import library
from ._states import BatchState, check_fits_state
from ._transforms import is_transformed
from ._undefined import finite, mark, marks_of


@dataclass(frozen=True, eq=False)
class ItemState(BatchState, ABC):
    """The stacks or queues of a batch after t steps. Immutable; autograd and ``torch.func`` transform its steps.

    For autograd a step is one function, unless ``torch.func`` transforms it: n steps take O(n^2 + n m) memory.

    Attributes:
        cumulative_strengths: (B, t), strength of item i and of all items that are popped before it; at least float32.
        items: the items, in the same dtype.
        marks: (B, m), added to all further readings: NaN for the components in which an item is not finite, and for
            all components if a strength is not finite; otherwise 0. The items have 0 in its place. None where the
            compiled kernels have found all finite.
    """

    cumulative_strengths: Tensor
    items: Items
    marks: Tensor | None = None

    _native: ClassVar[ModuleType | None] = None  # the step by the compiled kernels, which read the strength 1

    @staticmethod
    @abstractmethod
    def _advance(
        strengths: Tensor, pop: Tensor, push: Tensor, vectors: Tensor, read_strength: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """A step in plain PyTorch, as ``_item_steps.Advance``."""

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
        values = torch.zeros(batch_size, 0, size, dtype=dtype, device=device)
        return cls(values.new_zeros(batch_size, 0), Items(values))

    @property
    def values(self) -> Tensor:
        """The items in the order in which they were pushed, (B, t, m)."""
        return self.items.vectors()

    def step(
        self, pop: Tensor, push: Tensor, value: Tensor, *, read_strength: float | Tensor = 1.0
    ) -> tuple[Tensor, Self]:
        """Pop, push and read once (Sections 2.1 and 2.3 of Hao et al., 2018).

        Args:
            pop: (B,), the strengths u_t.
            push: (B,), the strengths d_t.
            value: (B, m), the vectors v_t.
            read_strength: how much of the strengths to read, a number or (B,).

        Returns:
            The reading (B, m) in the dtype of ``value``, and the state after the step.

        Raises:
            ValueError: if a shape, dtype or device does not fit the state or the other arguments, or the read strength
                is a number below 0 or not finite.
        """
        batch_size, _, size = self.items.settled.shape
        sizes = Sizes()
        sizes.check("pop", pop, f"{batch_size}")
        sizes.check("push", push, f"{batch_size}")
        sizes.check("value", value, f"{batch_size} {size}")
        check_read_strength(sizes, read_strength, f"{batch_size}")
        held = self.items.settled
        check_fits_state("pop", pop, held)
        amount = None
        if isinstance(read_strength, Tensor):
            amount = read_strength.to(held.dtype)
        elif read_strength != 1:
            amount = held.new_full((batch_size,), read_strength)
        reading, state = self._step(pop.to(held.dtype), push.to(held.dtype), value.to(held.dtype), amount)
        return reading.to(value.dtype), state

    def _step(self, pop: Tensor, push: Tensor, value: Tensor, amount: Tensor | None) -> tuple[Tensor, Self]:
        """``step`` of the right dtype, which reads an amount of strength (B,), None for 1."""
        is_plain = self._is_plain(pop, push, value, *([] if amount is None else [amount]))
        on_cpu = self.items.settled.device.type == "cpu"
        kernels = self._native if on_cpu and not is_plain and amount is None and library() is not None else None
        if self.marks is None and kernels is not None:
            reading, state, is_finite = self._after(pop, push, value, None, kernels, is_plain=False)
            if is_finite:
                return reading, state
        marks = marks_of(value, pop, push) + (0 if self.marks is None else self.marks)
        of_reading = marks
        if amount is not None:
            of_reading, amount = marks + mark(amount).unsqueeze(1), finite(amount)
        reading, state, _ = self._after(finite(pop), finite(push), finite(value), amount, kernels, is_plain)
        return reading + of_reading, replace(state, marks=marks)

    def _is_plain(self, *inputs: Tensor) -> bool:
        """Whether the step is in plain PyTorch, because it is transformed, or because a step before it was."""
        held = self.items.settled
        return held.requires_grad or torch.compiler.is_compiling() or is_transformed(*inputs, held)

    def _after(
        self,
        pop: Tensor,
        push: Tensor,
        value: Tensor,
        amount: Tensor | None,
        kernels: ModuleType | None,
        is_plain: bool,
    ) -> tuple[Tensor, Self, bool]:
        """The reading, the state after the step, and whether the kernels found all arguments finite."""
        strengths, items = self.cumulative_strengths, self.items
        inputs = [x for x in (strengths, pop, push, value, amount) if x is not None]
        follows = not is_plain and (items.history is not None or any(x.requires_grad for x in inputs))
        follows = follows and torch.is_grad_enabled()
        is_finite = True
        if is_plain or (kernels is None and not follows):
            vectors = torch.cat([self.values, value.unsqueeze(1)], 1)
            reading, strengths = self._advance(strengths, pop, push, vectors, amount)
            items = Items(vectors)
        else:
            value = value.resolve_neg().clone(memory_format=torch.contiguous_format)  # The caller may write to it.
            before = items.history if follows else None
            reading, strengths, history, is_finite = Step.apply(
                items, before, strengths, pop, push, value, amount, self._advance, kernels
            )
            items = Items(items.settled, (*items.recent, value), history if follows else None)
        return reading, replace(self, cumulative_strengths=strengths, items=items), is_finite
