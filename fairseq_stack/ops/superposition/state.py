"""The superposition stack one step at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .._arguments import Sizes, check_sizes, computation_dtype
from .._native import library
from .._states import BatchState, check_fits_state
from .._transforms import is_transformed
from .._undefined import finite, marks_of
from . import _native_step


@dataclass(frozen=True, eq=False)
class SuperpositionStackState(BatchState):
    """The stacks V_t of a batch after t steps. Immutable; autograd and ``torch.func`` transform its steps.

    On the CPU a step runs on the compiled kernels, unless ``torch.func`` transforms it. For autograd it is then one
    function, which keeps the stack before it: O(m n^2) memory for n steps.

    Attributes:
        elements: (B, t, m), the elements from the top down, at least float32; everything below them is 0.
        marks: (B, m), added to all further readings: NaN for the components in which a pushed vector is not finite,
            and for all components if an action is not finite; otherwise 0. The elements have 0 in its place. None where
            the compiled kernels have found all finite.
        depth_limit: how many elements it holds at most; None for no limit.
    """

    elements: Tensor
    marks: Tensor | None = None
    depth_limit: int | None = None

    @classmethod
    def initial(
        cls,
        *,
        batch_size: int,
        size: int,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
        depth_limit: int | None = None,
    ) -> SuperpositionStackState:
        """The state before the first step, V_0 = [0].

        Args:
            batch_size: B.
            size: m, the size of the pushed vectors.
            dtype: the dtype of the steps' inputs (default: torch's default dtype).
            device: the device of the steps' inputs (default: torch's default device).
            depth_limit: how many elements the stack holds; what lies deeper is lost. None for no limit.

        Raises:
            ValueError: the depth limit is not positive.
        """
        check_sizes(depth_limit=depth_limit)
        dtype = computation_dtype(dtype or torch.get_default_dtype())
        return cls(torch.zeros(batch_size, 0, size, dtype=dtype, device=device), None, depth_limit)

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
        inputs = actions.to(self.elements.dtype), value.to(self.elements.dtype)
        compiled = self._is_compiled(*inputs)
        if self.marks is None and compiled:
            elements, is_finite = _Step.apply(*inputs, self.elements, self._height())
            if is_finite:
                return elements[:, 0].to(value.dtype), replace(self, elements=elements)
        marks = marks_of(value, actions) + (0 if self.marks is None else self.marks)
        inputs = finite(inputs[0]), finite(inputs[1])
        elements = _Step.apply(*inputs, self.elements, self._height())[0] if compiled else self._plain(*inputs)
        return (elements[:, 0] + marks).to(value.dtype), replace(self, elements=elements, marks=marks)

    def _is_compiled(self, *inputs: Tensor) -> bool:
        """Whether a step and its gradients run on the compiled kernels."""
        if torch.compiler.is_compiling() or is_transformed(*inputs, self.elements):
            return False
        return self.elements.device.type == "cpu" and library() is not None

    def _plain(self, actions: Tensor, value: Tensor) -> Tensor:
        """Eq. 5: the next elements."""
        height, (batch_size, _, size) = self._height(), self.elements.shape
        pushed = torch.cat([value.unsqueeze(1), self.elements, value.new_zeros(batch_size, 2, size)], 1)
        push, noop, pop = actions[:, :, None, None].unbind(1)
        elements = torch.addcmul(push * pushed[:, :height], noop, pushed[:, 1 : height + 1])
        return torch.addcmul(elements, pop, pushed[:, 2 : height + 2])

    def _height(self) -> int:
        """How many elements the next stack has."""
        height = self.elements.shape[1] + 1
        return height if self.depth_limit is None else min(height, self.depth_limit)


class _Step(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, bool]:
        ctx.save_for_backward(*inputs[:3])
        return _native_step.step(*inputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, _: None) -> tuple[Tensor | None, ...]:
        actions, value, elements = ctx.saved_tensors
        return *_native_step.step_gradients(actions, value, elements, gradient), None
