"""A step of the stratification stack as one function for autograd, which keeps the strengths but copies no items.

The *history* of the items is a tensor without memory of its own, in the shape of their derivatives, and its gradient is
these derivatives. The backward pass of a step gets what all later steps have added up in them, adds what it owes, and
hands them on: n steps take O(n^2 + n m) memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from . import _native_step


class Items(NamedTuple):
    """The items of the stacks, from the bottom up."""

    settled: Tensor  # (B, k, m), in which no gradients flow
    recent: tuple[Tensor, ...] = ()  # what is above them, each (B, m)
    history: Tensor | None = None  # of those of them that autograd follows: the last

    def vectors(self) -> Tensor:
        """All in one tensor, (B, t, m)."""
        return torch.cat([self.settled, torch.stack(self.recent, 1)], 1) if self.recent else self.settled

    def index_select(self, index: Tensor) -> Items:
        """These batch rows, (B',)."""
        if self.history is None or not torch.is_grad_enabled():
            return Items(self.vectors().index_select(0, index))
        return Items(
            self.settled.index_select(0, index),
            tuple(x.index_select(0, index) for x in self.recent),
            self.history.index_select(1, index),
        )


def take_step(
    strengths: Tensor, items: Items, pop: Tensor, push: Tensor, value: Tensor, *, native: bool
) -> tuple[Tensor, Tensor, Items, bool]:
    """Pop, push and read.

    Args:
        strengths: H_{t-1}, (B, t - 1).
        items: v_1..v_{t-1}.
        pop: u_t, (B,).
        push: d_t, (B,).
        value: v_t, (B, m).
        native: whether to run on the compiled kernels.

    Returns:
        The reading (B, m), H_t, the items after the step, and whether the kernels found all arguments finite.
    """
    known = items.history is not None or any(x.requires_grad for x in (strengths, pop, push, value))
    follows = known and torch.is_grad_enabled()
    if not (native or follows):
        vectors = torch.cat([items.vectors(), value.unsqueeze(1)], 1)
        return *advance(strengths, pop, push, vectors), Items(vectors), True
    value = value.resolve_neg().clone(memory_format=torch.contiguous_format)  # The caller may write to it.
    finite: list[bool] = []
    before = items.history if follows else None
    reading, after, history = _Step.apply(items, before, strengths, pop, push, value, native, finite)
    return reading, after, Items(items.settled, (*items.recent, value), history if follows else None), all(finite)


def advance(strengths: Tensor, pop: Tensor, push: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
    """A step in plain PyTorch: the reading (B, m), and H_t (B, t), from H_{t-1} and v_1..v_t (B, t, m)."""
    after = pad(torch.relu(strengths - pop.unsqueeze(1)), (0, 1)) + push.unsqueeze(1)
    readable = after.clamp(max=1)
    weights = readable - pad(readable[:, 1:], (0, 1))
    with torch.autocast(vectors.device.type, enabled=False):
        return torch.bmm(weights.unsqueeze(1), vectors).squeeze(1), after


class _Step(torch.autograd.Function):
    """Items with their history, H_{t-1} and the arguments of a step to the reading, H_t and the next history."""

    @staticmethod
    def forward(
        ctx: Any,
        items: Items,
        history: Tensor | None,
        strengths: Tensor,
        pop: Tensor,
        push: Tensor,
        value: Tensor,
        native: bool,
        finite: list[bool],
    ) -> tuple[Tensor, Tensor, Tensor]:
        items = items._replace(recent=(*items.recent, value), history=None)
        followed = 1 if history is None else len(history) + 1
        if native:
            arguments = [x.resolve_neg().contiguous() for x in (strengths, pop, push)]
            reading, after, is_finite = _native_step.forward(items.settled, items.recent, *arguments)
            finite.append(is_finite)
        else:
            reading, after = advance(strengths, pop, push, items.vectors())
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(strengths, pop, push, after)
        ctx.items, ctx.followed, ctx.native = items, followed, native
        return reading, after, value.new_zeros(()).expand(followed, *value.shape)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        """Its own derivative, which is taken where there is to be a graph of this pass, is that of ``advance``."""
        *of_outputs, derivatives = gradients
        if derivatives is None:
            derivatives = ctx.items.settled.new_zeros(ctx.followed, *ctx.items.recent[-1].shape)
        if ctx.native and not torch.is_grad_enabled():
            derivatives = derivatives.contiguous()  # They belong to this node alone, as no other has the same history.
            saved = [x.resolve_neg().contiguous() for x in ctx.saved_tensors]
            given = [None if x is None else x.resolve_neg().contiguous() for x in of_outputs]
            found = _native_step.backward(ctx.items.settled, ctx.items.recent, derivatives, *saved, *given)
        else:
            *found, of_vectors = _differentiate(*ctx.saved_tensors[:3], ctx.items.vectors(), of_outputs)
            derivatives = derivatives + of_vectors[:, -ctx.followed :].transpose(0, 1)
        return None, derivatives[:-1] if ctx.followed > 1 else None, *found, derivatives[-1].clone(), None, None


def _differentiate(*inputs: Any) -> tuple[Tensor, ...]:
    """The gradients of the arguments of ``advance`` from those of its results, which come last; None is 0."""
    *arguments, gradients = inputs
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        # Views, since some arguments may have been computed from others.
        arguments = [x.view_as(x) if again and x.requires_grad else x.detach().requires_grad_() for x in arguments]
        results = advance(*arguments)
    given = [
        torch.zeros_like(x) if gradient is None else gradient for x, gradient in zip(results, gradients, strict=True)
    ]
    return torch.autograd.grad(results, arguments, given, create_graph=again)
