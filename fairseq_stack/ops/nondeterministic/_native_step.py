"""A step of the compiled kernels: its call, and how a column lies in memory."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from ._columns import DEAD
from ._tracked_columns import Column

BYTES = 8  # of a number
_DEAD = -(2**28)  # DEAD of the kernels


class Sizes(NamedTuple):
    """In bytes, for one beam: of the next column and its derivatives, and of the working memory of both passes."""

    column: int
    adjoint: int
    forward: int
    backward: int


def plain(x: Tensor) -> Tensor:
    """Contiguous in float64; a view such as x.conj().imag has memory that is yet to be negated."""
    return x.detach().double().resolve_neg().contiguous()


def pointers(addresses: Iterable[int]) -> array[int]:
    """An array of pointers; NULL is 0."""
    return array("Q", addresses)


class Call(ctypes.Structure):
    """struct nd_step_call."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("beams", "step", "num_states", "num_symbols", "value_size")),
        *((name, ctypes.c_int64) for name in ("window", "kept")),
        *((name, ctypes.c_void_p) for name in ("ancestors", "columns", "logits", "values", "readings")),
        *((name, ctypes.c_void_p) for name in ("adjoints", "cotangents", "logit_gradients", "value_gradients")),
    )


def unpack(
    rows: Tensor, step: int, num_states: int, num_symbols: int, value_size: int, window: int, lanes: int
) -> Column:
    """A column, as ``_native/src/nondeterministic_step_columns.h`` lays it out.

    Args:
        rows: (B, bytes), of uint8.
        step: its number.
        num_states: Q.
        num_symbols: S.
        value_size: m.
        window: D.
        lanes: numbers in a vector.
    """
    first = max(step - window + 1, 0)
    tiles, size = step // lanes - first // lanes + 1, num_states * num_symbols
    counts = {
        "gamma": tiles * size * size * lanes, "exponents": tiles * lanes,
        "popped": tiles * num_states * size * lanes, "popped_exponents": tiles * lanes,
        "transitions": size * (2 * size + num_states), "alpha": size, "total": 1, "alpha_exponent": 1,
        "value": value_size, "marks": value_size,
    }  # fmt: skip
    arrays = {}
    for name, count in counts.items():
        arrays[name] = rows[:, : BYTES * count].view(torch.int64 if "exponent" in name else torch.float64)
        rows = rows[:, -(-BYTES * count // 64) * 64 :]
    gamma = arrays["gamma"].view(-1, tiles, num_symbols, num_states, size, lanes)
    gamma = gamma.permute(0, 1, 5, 4, 3, 2).reshape(-1, tiles * lanes, size, size)
    exponents = arrays["exponents"].double()
    own = slice(first % lanes, step - first // lanes * lanes + 1)
    return Column(
        gamma=gamma[:, own],
        exponents=torch.where(exponents <= _DEAD, DEAD, exponents)[:, own],
        alpha=arrays["alpha"],
        alpha_exponent=arrays["alpha_exponent"][:, 0].double(),
        value=arrays["value"],
        marks=arrays["marks"],
    )
