"""A step of a stack or a queue as one function for autograd, which keeps the strengths but copies no items.

The *history* of the items is a tensor without memory of its own, in the shape of their derivatives, and its gradient is
these derivatives. The backward pass of a step gets what all later steps have added up in them, adds what it owes, and
hands them on: n steps take O(n^2 + n m) memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor

Advance = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor | None], tuple[Tensor, Tensor]]
"""A step in plain PyTorch: the reading (B, m), and the cumulative strengths (B, t).

It gets the cumulative strengths before the step (B, t - 1), u_t and d_t (B,), the vectors v_1..v_t (B, t, m), and the
read strength (B,), None for 1.
"""


class Items(NamedTuple):
    """The items of the stacks, from the bottom up."""

    settled: Tensor  # (B, k, m), in which no gradients flow
    recent: tuple[Tensor, ...] = ()  # what is above them, each (B, m)
    history: Tensor | None = None  # of the items that autograd follows, which are the last

    def vectors(self) -> Tensor:
        """All in one tensor, (B, t, m)."""
        return torch.cat([self.settled, torch.stack(self.recent, 1)], 1) if self.recent else self.settled

    def detach(self) -> Items:
        """All without their history."""
        return Items(self.vectors().detach())

    def reorder(self, index: Tensor) -> Items:
        """These batch rows, (B',)."""
        if self.history is None or not torch.is_grad_enabled():
            return Items(self.vectors().index_select(0, index))
        return Items(
            self.settled.index_select(0, index),
            tuple(x.index_select(0, index) for x in self.recent),
            self.history.index_select(1, index),
        )


class Step(torch.autograd.Function):
    """Items with their history, and the arguments of a step, to the reading, the strengths and the next history."""

    @staticmethod
    def forward(
        ctx: Any,
        items: Items,
        history: Tensor | None,
        strengths: Tensor,
        pop: Tensor,
        push: Tensor,
        value: Tensor,
        read_strength: Tensor | None,
        advance: Advance,
        native: ModuleType | None,
    ) -> tuple[Tensor, Tensor, Tensor, bool]:
        items = items._replace(recent=(*items.recent, value), history=None)
        followed = 1 if history is None else len(history) + 1
        is_finite = True
        if native is None:
            reading, after = advance(strengths, pop, push, items.vectors(), read_strength)
        else:
            reading, after, is_finite = native.forward(items.settled, items.recent, strengths, pop, push)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(strengths, pop, push, after, read_strength)
        ctx.items, ctx.followed, ctx.advance, ctx.native = items, followed, advance, native
        return reading, after, value.new_zeros(()).expand(followed, *value.shape), is_finite

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        """Its own derivative, which is taken where there is to be a graph of this pass, is that of ``advance``."""
        *of_outputs, derivatives, _ = gradients
        strengths, pop, push, after, read_strength = ctx.saved_tensors
        of_read_strength = None
        if derivatives is None:
            derivatives = ctx.items.settled.new_zeros(ctx.followed, *ctx.items.recent[-1].shape)
        if ctx.native is not None and not torch.is_grad_enabled():
            derivatives = derivatives.contiguous()  # They belong to this node alone, as no other has the same history.
            saved = strengths, pop, push, after
            of_step = ctx.native.backward(ctx.items.settled, ctx.items.recent, derivatives, *saved, *of_outputs)
        else:
            arguments = strengths, pop, push, ctx.items.vectors(), read_strength
            *of_step, of_vectors, of_read_strength = _differentiate(ctx.advance, arguments, of_outputs)
            assert of_vectors is not None
            derivatives = derivatives + of_vectors[:, -ctx.followed :].transpose(0, 1)
        of_history = derivatives[:-1] if ctx.followed > 1 else None
        return None, of_history, *of_step, derivatives[-1].clone(), of_read_strength, None, None


def _differentiate(
    advance: Advance, inputs: Sequence[Tensor | None], gradients: Sequence[Tensor | None]
) -> list[Tensor | None]:
    """The gradients of the arguments of ``advance`` from its results' gradients, where None is 0; of None, None."""
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        # Views, since some arguments may have been computed from others.
        arguments = [None if x is None else _variable(x, again) for x in inputs]
        results = advance(*arguments)  # type: ignore[arg-type]
    cotangents = [
        torch.zeros_like(x) if gradient is None else gradient for x, gradient in zip(results, gradients, strict=True)
    ]
    tensors = [x for x in arguments if x is not None]
    of_tensors = iter(torch.autograd.grad(results, tensors, cotangents, create_graph=again, materialize_grads=True))
    return [None if x is None else next(of_tensors) for x in arguments]


def _variable(x: Tensor, again: bool) -> Tensor:
    return x.view_as(x) if again and x.requires_grad else x.detach().requires_grad_()
