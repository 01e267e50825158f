"""Autograd functions that let ``torch.func`` transform the fast backends: grad, vjp, jacrev and vmap, in any nesting.

``torch.func`` transforms the forward pass of an autograd function and its backward pass separately. The backward
pass is therefore also an autograd function, and gets all that it needs from the inputs and outputs of the forward pass.
All tensors have the batch as their first axis, and the sequences of a batch are independent: vmap makes the batch
larger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, NoReturn

import torch
from torch import Tensor
from torch.autograd import forward_ad

Mapped = tuple[tuple[Any, ...], tuple[int | None, ...]]
"""What the ``vmap`` of an autograd function returns: outputs, and where the mapped axis is in each."""


class DifferentiableOnce(torch.autograd.Function):
    """An autograd function of batches that returns a tuple, with no forward-mode derivative.

    Attributes:
        op: the name of the op that it belongs to, for messages.
    """

    op: ClassVar[str]

    @classmethod
    def jvp(cls, ctx: Any, *tangents: Any) -> NoReturn:
        _refuse_tangents(cls.op)

    @classmethod
    def vmap(cls, info: Any, in_dims: Sequence[int | None], *inputs: Any) -> Mapped:
        return _map_batches(cls.apply, info.batch_size, in_dims, inputs)


class BackwardPass(DifferentiableOnce):
    """The backward pass of a :class:`DifferentiableOnce`; it has no derivative of its own.

    Attributes:
        num_cotangents: how many of its inputs, from the first on, are cotangents.
    """

    num_cotangents: ClassVar[int] = 1

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    @classmethod
    def backward(cls, ctx: Any, *grads: Any) -> NoReturn:
        refuse_second_derivative(cls.op)

    @classmethod
    def vmap(cls, info: Any, in_dims: Sequence[int | None], *inputs: Any) -> Mapped:
        # jacrev has many cotangents of one forward pass, and copying all that the pass left could take much memory.
        one_forward_pass = all(dim is None for i, dim in enumerate(in_dims) if i >= cls.num_cotangents)
        return (_map_rows if one_forward_pass else _map_batches)(cls.apply, info.batch_size, in_dims, inputs)


def refuse_second_derivative(op: str) -> NoReturn:
    raise RuntimeError(f"{op}: only backend='reference' has second derivatives")


def refuse_forward_mode(op: str, *tensors: Tensor) -> None:
    """Raise RuntimeError if a tensor has a forward-mode derivative: a custom operator would return none, silently."""
    if forward_ad._current_level >= 0:
        _NoTangents.apply(op, *tensors)


class _NoTangents(torch.autograd.Function):
    """Computes nothing; ``torch.func`` calls ``jvp`` if a tensor has a tangent at any level of its transformations."""

    @staticmethod
    def forward(op: str, *tensors: Tensor) -> Tensor:
        return tensors[0].new_empty(0)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.op = inputs[0]

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> NoReturn:
        _refuse_tangents(ctx.op)

    @classmethod
    def vmap(cls, info: Any, in_dims: Sequence[int | None], *inputs: Any) -> tuple[Tensor, None]:
        return cls.apply(*inputs), None


def _refuse_tangents(op: str) -> NoReturn:
    raise RuntimeError(
        f"{op}: only backend='reference' has the forward-mode derivatives that jvp, jacfwd and hessian take"
    )


def is_transformed(*tensors: Tensor) -> bool:
    """Whether ``torch.func`` transforms this computation, or one of the tensors has a forward-mode derivative."""
    if torch._C._are_functorch_transforms_active():
        return True
    dual = forward_ad._current_level >= 0
    return dual and any(forward_ad.unpack_dual(x).tangent is not None for x in tensors)


def _map_batches(
    function: Callable[..., tuple[Any, ...]], size: int, in_dims: Sequence[int | None], inputs: Sequence[Any]
) -> Mapped:
    """Call a function of batches under vmap, with the mapped axis as a part of the batch axis.

    Args:
        function: takes and returns tensors with a batch axis first, and other objects, which are the same for all rows.
        size: the size of the mapped axis.
        in_dims: where the mapped axis is in each input; None where there is none.
        inputs: arguments of ``function``.
    """
    if size == 0:
        return _map_rows(function, size, in_dims, inputs)
    outputs = function(*(_fold(x, dim, size) for x, dim in zip(inputs, in_dims, strict=True)))
    return _mapped(x.unflatten(0, (size, x.shape[0] // size)) if isinstance(x, Tensor) else x for x in outputs)


def _fold(x: Any, dim: int | None, size: int) -> Any:
    if not isinstance(x, Tensor):
        return x
    x = x.expand(size, *x.shape) if dim is None else x.movedim(dim, 0)
    return x.flatten(0, 1)


def _map_rows(
    function: Callable[..., tuple[Any, ...]], size: int, in_dims: Sequence[int | None], inputs: Sequence[Any]
) -> Mapped:
    """The same with one call for each row of the mapped axis; without rows, one call finds the shapes."""
    rows = [function(*_row(inputs, in_dims, i)) for i in range(max(size, 1))]
    return _mapped(
        torch.stack(same)[:size] if isinstance(same[0], Tensor) else same[0] for same in zip(*rows, strict=True)
    )


def _row(inputs: Sequence[Any], dims: Sequence[int | None], i: int) -> list[Any]:
    """Row i of the mapped axis; zeros if the axis has no rows."""
    return [
        x if dim is None else x.select(dim, i) if x.shape[dim] else x.sum(dim)
        for x, dim in zip(inputs, dims, strict=True)
    ]


def _mapped(outputs: Iterable[Any]) -> Mapped:
    outputs = tuple(outputs)
    return outputs, tuple(0 if isinstance(x, Tensor) else None for x in outputs)
