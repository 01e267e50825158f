"""Derivatives of fast backends for autograd and ``torch.func``, and of custom operators for ``torch.compile``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor
from torch._library.custom_ops import CustomOpDef

from ._transforms import BackwardPass, DifferentiableOnce, is_transformed, refuse_second_derivative

Function = Callable[..., tuple[Tensor, ...]]


def differentiable_once(
    op: str,
    forward: CustomOpDef | Callable[..., Any],
    backward: CustomOpDef | Callable[..., Any],
    *,
    saved: slice = slice(0),
    num_cotangents: int = 1,
) -> Function:
    """Give a function, or a custom operator, the backward pass that another one computes.

    Args:
        op: the name of the op that it belongs to, for messages.
        forward: takes tensors whose first axis is the batch, and then options, which are not tensors.
        backward: an operator if ``forward`` is one. It gets the cotangents, of which some may be None, but not all; the
            tensors that ``forward`` got; those that it left; and the options. It returns the gradients of the tensors.
        saved: which outputs ``forward`` leaves for it.
        num_cotangents: how many outputs, from the first one on, have derivatives.

    Returns:
        A function with the inputs of ``forward``, which returns its outputs as a tuple.
    """

    def save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(*(x for x in inputs if isinstance(x, Tensor)), *_as_tuple(output)[saved])
        ctx.options = [x for x in inputs if not isinstance(x, Tensor)]

    def gradients(run: Function, ctx: Any, cotangents: tuple[Any, ...]) -> tuple[Tensor | None, ...]:
        of_tensors = run(*cotangents[:num_cotangents], *ctx.saved_tensors, *ctx.options)
        return *of_tensors, *[None] * len(ctx.options)

    def gradients_when_compiled(ctx: Any, *cotangents: Any) -> tuple[Tensor | None, ...]:
        return gradients(lambda *inputs: _as_tuple(backward(*inputs)), ctx, cotangents)

    if isinstance(forward, CustomOpDef) and isinstance(backward, CustomOpDef):  # for torch.compile
        register_gradients(op, forward, backward, save=save, gradients=gradients_when_compiled)

    class Forward(DifferentiableOnce):
        @staticmethod
        def forward(*inputs: Any) -> tuple[Tensor, ...]:
            return _as_tuple(forward(*inputs))

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
            ctx.set_materialize_grads(False)
            save(ctx, inputs, output)
            ctx.mark_non_differentiable(*output[num_cotangents:])

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> tuple[Tensor | None, ...]:
            if _are_none(cotangents):
                return (None,) * len(ctx.needs_input_grad)
            return gradients(Backward.apply, ctx, cotangents)

    class Backward(BackwardPass):
        @staticmethod
        def forward(*inputs: Any) -> tuple[Tensor, ...]:
            return _as_tuple(backward(*inputs))

    Forward.op = Backward.op = op
    Backward.num_cotangents = num_cotangents

    def call(*inputs: Any) -> tuple[Tensor, ...]:
        if isinstance(forward, CustomOpDef) and torch.compiler.is_compiling() and not is_transformed():
            return _as_tuple(forward(*inputs))
        outputs: tuple[Tensor, ...] = Forward.apply(*inputs)
        return outputs

    return call


def register_gradients(
    op: str,
    forward: CustomOpDef,
    backward: CustomOpDef,
    *,
    save: Callable[[Any, tuple[Any, ...], Any], None],
    gradients: Callable[..., tuple[Tensor | None, ...]],
) -> None:
    """Give a custom operator gradients for autograd alone: ``torch.func`` does not transform it.

    Args:
        op: the name of the op that it belongs to, for messages.
        forward: the operator.
        backward: the operator that ``gradients`` calls; it has no derivative of its own.
        save: as ``setup_context`` of an autograd function.
        gradients: as ``backward`` of an autograd function; some cotangents may be None, but not all.
    """

    def save_alone(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.set_materialize_grads(False)  # or else the record of a pass, which is large, gets zeros as its cotangent
        save(ctx, inputs, output)

    def gradients_if_any(ctx: Any, *cotangents: Any) -> tuple[Tensor | None, ...]:
        if _are_none(cotangents):
            return (None,) * len(ctx.needs_input_grad)
        return gradients(ctx, *cotangents)

    def refuse(ctx: Any, *cotangents: Any) -> None:
        refuse_second_derivative(op)

    forward.register_autograd(gradients_if_any, setup_context=save_alone)
    backward.register_autograd(refuse)


def gradients_inside(compute: Callable[..., Tensor], inputs: Sequence[Tensor], cotangent: Tensor) -> tuple[Tensor, ...]:
    """The gradients of the inputs, given the gradient of what is computed of them, by autograd inside an operator.

    PyTorch takes autograd off the dispatcher there, but only in this thread, and ``torch.enable_grad`` does not bring
    it back (https://github.com/pytorch/pytorch/issues/136771).
    """

    def differentiate() -> tuple[Tensor, ...]:
        leaves = [x.detach().requires_grad_() for x in inputs]
        return torch.autograd.grad(compute(*leaves), leaves, cotangent, allow_unused=True, materialize_grads=True)

    with ThreadPoolExecutor(1) as other_thread:
        return other_thread.submit(differentiate).result()


def _are_none(cotangents: tuple[Any, ...]) -> bool:
    return all(x is None for x in cotangents)


def _as_tuple(outputs: Any) -> tuple[Tensor, ...]:
    """An operator with one output returns it alone."""
    return outputs if isinstance(outputs, tuple) else (outputs,)
