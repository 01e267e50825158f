"""The superposition stack in plain PyTorch, with a hand-written backward pass: runs on any device.

Readings are linear in the pushed vectors, R = W V, and W is what the same stack reads if the unit vectors
e_1, ..., e_n are pushed instead. A stack of n-vectors costs less to update than one of m-vectors if n < m, so
the shorter vectors are taken: O(n^2 min(n, m)) operations instead of O(n^2 m). A stack that holds D elements takes
O(n D m).

The walk from V_0 to V_n is cut into segments of about sqrt(n) steps. Only the stacks between them are kept,
and the backward pass walks each segment again: it takes less memory, and no more time where memory is slow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Any

import torch
from torch import Tensor

from .._arguments import without_autocast
from .._operators import differentiable_once
from .._undefined import causal
from .._units import units_like


@causal
def superposition_stack_pytorch(actions: Tensor, values: Tensor, *, depth_limit: int | None = None) -> Tensor:
    """As ``superposition_stack_reference``, but differentiable only once."""
    readings: Tensor
    readings, *_ = _differentiable_stack(actions, values, _Heights(values.size(1), depth_limit or values.size(1)))
    return readings


@dataclass(frozen=True)
class _Heights:
    """How many elements of V_t matter, for t = 0, ..., n: at most t were pushed, and at most n - t can still be popped.

    Attributes:
        length: n.
        limit: how many elements the stack holds.
    """

    length: int
    limit: int

    def __call__(self, t: int) -> int:
        return min(t, self.length - t + 1, self.limit)

    @property
    def are_limited(self) -> bool:
        """Whether the stack loses elements that could be read again."""
        return self.limit < (self.length + 1) // 2


def _stack(actions: Tensor, values: Tensor, height: _Heights) -> tuple[Tensor, ...]:
    """The readings, and for the backward pass, if n < m, the weights W; and each segment's first stack."""
    if not _takes_units(values, height):
        readings, stacks = _forward(actions, values, height, units=False)
        return readings, *stacks
    weights, stacks = _forward(actions, units_like(values), height, units=True)
    return torch.bmm(weights, values), weights, *stacks


def _stack_backward(grad: Tensor, actions: Tensor, values: Tensor, *saved_and_height: Any) -> tuple[Tensor, Tensor]:
    *saved, height = saved_and_height
    with without_autocast(grad.device):
        if not _takes_units(values, height):
            return _backward(actions, values, saved, grad, height, units=False)
        weights, *stacks = saved
        # W is largest next to its diagonal; rounding errors are smaller if what is large is added last.
        grad_values = torch.bmm(weights.flip(1).transpose(1, 2), grad.flip(1))
        grad_weights = _inner_products(grad, values)
        grad_actions, _ = _backward(actions, units_like(values), stacks, grad_weights, height, units=True)
        return grad_actions, grad_values


_differentiable_stack = differentiable_once("superposition_stack", _stack, _stack_backward, saved=slice(1, None))


def _inner_products(left: Tensor, right: Tensor) -> Tensor:
    """The inner products of all pairs of vectors from (B, n, m) and (B, n, m), (B, n, n).

    A few components are added up at a time, and then the sums: rounding errors grow with the number of additions.
    """
    products = left.new_zeros(*left.shape[:2], right.size(1))
    for some, others in zip(left.split(64, 2), right.split(64, 2), strict=True):
        products.baddbmm_(some, others.transpose(1, 2))
    return products


def _takes_units(values: Tensor, height: _Heights) -> bool:
    return not height.are_limited and values.size(1) < values.size(2)


def _segments(length: int) -> list[tuple[int, int]]:
    """The segments as pairs (start, stop): steps start+1, ..., stop lead from V_start to V_stop."""
    span = isqrt(length) + 1
    return [(start, min(start + span, length)) for start in range(0, length, span)]


def _pushed(values: Tensor, start: int, stop: int, units: bool) -> Tensor:
    """(B, stop - start, components that are not 0 in V_stop): the values of a segment."""
    return values[:, start:stop, :stop] if units else values[:, start:stop]


def _forward(actions: Tensor, values: Tensor, height: _Heights, *, units: bool) -> tuple[Tensor, list[Tensor]]:
    """The readings and each segment's first stack.

    ``units`` says that the values are e_1, ..., e_n, so that V_t[i] has zeros after component t.
    """
    batch_size, length, _ = values.shape
    readings = torch.zeros_like(values, memory_format=torch.contiguous_format)
    stack = values.new_zeros(batch_size, 0, 0)
    stacks = []
    for start, stop in _segments(length):
        stacks.append(stack)
        pushed = _pushed(values, start, stop, units)
        walk = _walk(stack, actions[:, start:stop], pushed, start, height)
        readings[:, start:stop, : pushed.size(2)] = walk[1:, :, 1].transpose(0, 1)
        stack = walk[-1, :, 1 : height(stop) + 1].clone()
    return readings, stacks


def _backward(
    actions: Tensor, values: Tensor, stacks: Sequence[Tensor], grad_readings: Tensor, height: _Heights, *, units: bool
) -> tuple[Tensor, Tensor]:
    """The gradients of ``actions`` and, unless ``units``, of ``values``, from what ``_forward`` returned."""
    length = values.size(1)
    grad_actions = torch.empty_like(actions)
    grad_values = torch.zeros_like(grad_readings)
    grad_stack = values.new_zeros(values.size(0), 0, values.size(2))
    for (start, stop), stack in zip(reversed(_segments(length)), reversed(stacks), strict=True):
        step_actions = actions[:, start:stop]
        pushed = _pushed(values, start, stop, units)
        size = pushed.size(2)
        walk = _walk(stack, step_actions, pushed, start, height)
        grad = torch.zeros_like(walk)
        grad[-1, :, 1 : grad_stack.size(1) + 1] = grad_stack[..., :size]
        grad[1:, :, 1] += grad_readings[:, start:stop, :size].transpose(0, 1)
        grad_actions[:, start:stop] = _walk_back(walk, grad, step_actions, start, height)
        grad_values[:, start:stop, :size] = grad[1:, :, 1].transpose(0, 1) * step_actions[..., :1]
        grad_stack = grad[0, :, 1 : height(start) + 1]
    return grad_actions, grad_values


def _walk(stack: Tensor, actions: Tensor, values: Tensor, start: int, height: _Heights) -> Tensor:
    """Eqs. 5-8 for one segment.

    Args:
        stack: (B, height, components), V_start; it may lack components that are 0.
        actions: (B, steps, 3).
        values: (B, steps, components).

    Returns:
        (steps + 1, B, rows, components): [j, :, i] is V_{start+j}[i] for i = 1, ..., height of V_{start+j},
        and [j, :, 0] is the vector that is pushed next, ABOVE(1); all else is 0. There are rows for the
        greatest height, for ABOVE(1), and for one 0 as the last BELOW.
    """
    batch_size, steps, size = values.shape
    rows = 2 + max(height(t) for t in range(start, start + steps + 1))
    walk = values.new_zeros(steps + 1, batch_size, rows, size)
    walk[0, :, 1 : stack.size(1) + 1, : stack.size(2)] = stack
    walk[:-1, :, 0] = values.transpose(0, 1)
    for j, (push, noop, pop) in enumerate(_weights(actions)):
        depths = height(start + j + 1)
        old, new = walk[j], walk[j + 1, :, 1 : depths + 1]
        torch.mul(old[:, :depths], push, out=new)
        new.addcmul_(old[:, 1 : depths + 1], noop)
        new.addcmul_(old[:, 2 : depths + 2], pop)
    return walk


def _weights(actions: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """The weights of push, no-op and pop, each (B, 1, 1), for one step after the other."""
    return (step.unbind(0) for step in actions.permute(1, 2, 0)[..., None, None].unbind(0))


def _walk_back(walk: Tensor, grad: Tensor, actions: Tensor, start: int, height: _Heights) -> Tensor:
    """The reverse of ``_walk``: carry gradients from each stack of a segment to the one before it.

    Args:
        walk: (steps + 1, B, rows, components), from ``_walk``.
        grad: of the same shape, the gradients of V_start, ..., V_stop except for what comes through the steps of this
            segment, which is added in place; row 0 is 0.
        actions: (B, steps, 3).

    Returns:
        (B, steps, 3), the gradient of ``actions``.
    """
    rows = walk.size(2) - 2
    # A view: operands[j] stacks ABOVE, AT and BELOW of the step from V_{start+j}.
    operands = walk.unfold(2, rows, 1).permute(0, 2, 1, 4, 3)
    products = walk.new_empty(operands.shape[1:])
    grad_weights = walk.new_empty(actions.size(1), 3, actions.size(0))
    for j, (push, noop, pop) in reversed(list(enumerate(_weights(actions)))):
        torch.mul(operands[j], grad[j + 1, :, 1 : rows + 1], out=products)
        torch.sum(products, (2, 3), out=grad_weights[j])
        depths = height(start + j)
        new, old = grad[j + 1], grad[j, :, 1 : depths + 1]
        old.addcmul_(new[:, 2 : depths + 2], push)
        old.addcmul_(new[:, 1 : depths + 1], noop)
        old.addcmul_(new[:, :depths], pop)
    return grad_weights.permute(2, 0, 1)
