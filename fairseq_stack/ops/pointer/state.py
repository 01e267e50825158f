"""The pointer stack, one step or several steps at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from .._arguments import Sizes, check_sizes, computation_dtype, without_autocast
from .._states import BatchState, check_fits_state
from .._undefined import finite, from_then_on, mark, marks_of
from .pytorch import extend


@dataclass(frozen=True, eq=False)
class PointerStackState(BatchState):
    """The stacks of a batch after t steps. Immutable.

    Attributes:
        stack: (B, C, m), M_t, with numbers in the place of what is undefined.
        position: (B,), z_t, in float64, likewise.
        marks: (B, m), NaN for the components of M_t that are undefined, otherwise 0.
        kappa: (B,), how sharp addresses are.
        clamped: whether positions are kept within the cells.
    """

    stack: Tensor
    position: Tensor
    marks: Tensor
    kappa: Tensor
    clamped: bool = False

    @classmethod
    def initial(
        cls,
        kappa: Tensor,
        *,
        size: int,
        cells: int,
        clamped: bool = False,
    ) -> Self:
        """M_0 = 0 and z_0 = 0, for vectors of this size.

        Raises:
            ValueError: if the shape, dtype or layout of kappa is wrong, or ``cells`` is below 1.
        """
        check_sizes(cells=cells)
        Sizes().check("kappa", kappa, "B")
        kappa = kappa.to(computation_dtype(kappa.dtype))
        stack = kappa.new_zeros(len(kappa), cells, size)
        position = torch.zeros_like(kappa, dtype=torch.float64)
        return cls(stack, position, kappa.new_zeros(len(kappa), size), kappa, clamped)

    def step(self, push: Tensor, pop: Tensor, value: Tensor) -> tuple[Tensor, Self]:
        """One step of :func:`.pointer_stack`: the reading r_t, (B, m), and the next state.

        Args:
            push: (B,).
            pop: (B,).
            value: (B, m).

        Raises:
            ValueError: if an argument's shape, dtype, layout or device is wrong.
        """
        readings, state = self.extend(push.unsqueeze(1), pop.unsqueeze(1), value.unsqueeze(1))
        return readings[:, 0], state

    def extend(self, push: Tensor, pop: Tensor, values: Tensor) -> tuple[Tensor, Self]:
        """n steps: the readings, (B, n, m), and the last state. It takes the arguments of :func:`.pointer_stack`.

        Raises:
            ValueError: if an argument's shape, dtype, layout or device is wrong.
        """
        check_actions(Sizes(), push, pop, values)
        check_fits_state("values", values, self.stack)
        expected = (len(values), values.size(2))
        if (len(self.stack), self.stack.size(2)) != expected:
            got = tuple(self.stack.shape)
            raise ValueError(f"state: expected {expected[0]} stacks of {expected[1]}-vectors, got the shape {got}")
        dtype = self.stack.dtype
        marks = from_then_on(marks_of(values, push, pop)).to(dtype) + self.marks.unsqueeze(1)
        pushed, popped, vectors = (finite(x).to(dtype) for x in (push, pop, values))
        with without_autocast(self.stack.device):
            readings, stack, position = extend(
                self.stack, self.position, pushed, popped, vectors, finite(self.kappa), self.clamped
            )
        last = marks[:, -1] if marks.size(1) else self.marks
        readings = (readings + marks + mark(self.kappa)[:, None, None]).to(values.dtype)
        return readings, type(self)(stack, position, last, self.kappa, self.clamped)


def check_actions(sizes: Sizes, push: Tensor, pop: Tensor, values: Tensor) -> None:
    """Check what the pointer stack is given in each step.

    Raises:
        ValueError: naming the argument, what was expected and what was got.
    """
    sizes.check("push", push, "B n")
    sizes.check("pop", pop, "B n")
    sizes.check("values", values, "B n m")
