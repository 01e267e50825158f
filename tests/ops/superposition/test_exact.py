"""All backends return the true numbers, which are known in integers: actions are binary fractions."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.helpers import gradients
from tests.ops import exact
from tests.ops.exact import as_integers, quotients
from tests.ops.stacks import Way, ways


class Walk(NamedTuple):
    """Actions of 0, 1/4, 1/2 and 1, integers for values and cotangents, and what follows from them, as doubles."""

    actions: Tensor  # (1, n, 3)
    values: Tensor  # (1, n, m)
    cotangents: Tensor
    readings: Tensor
    action_gradients: Tensor
    value_gradients: Tensor


@functools.cache
def walk(length: int, size: int, fractional: int) -> Walk:
    """At most ``fractional`` steps mix actions: with weights whose sum is at most 1."""
    generator = torch.Generator().manual_seed(0)
    mixtures = torch.tensor([[4, 0, 0], [0, 4, 0], [0, 0, 4], [2, 1, 1], [1, 2, 1], [1, 1, 2], [2, 0, 2], [2, 1, 0]])
    choices = torch.randint(3, (length,), generator=generator)
    mixed = torch.randperm(length, generator=generator)[:fractional]
    choices[mixed] = torch.randint(3, len(mixtures), (len(mixed),), generator=generator)
    quarters = as_integers(mixtures[choices])
    values, cotangents = (as_integers(torch.randint(-3, 4, (length, size), generator=generator)) for _ in range(2))
    # Readings are linear in each weight: its gradient is the difference that 4 quarters more of it make.
    more = quarters + 4 * np.eye(3 * length, dtype=object).reshape(3 * length, length, 3)
    scales = np.array([4 ** (t + 1) for t in range(length)], dtype=object).reshape(length, 1)
    readings = exact.superposition(quarters, values, 4)
    differences = exact.superposition(more, values, 4) - readings
    whole = 4**length
    gradients = (differences * cotangents * (whole // scales)).sum((1, 2))
    weights = exact.superposition(quarters, np.eye(length, dtype=object), 4) * (whole // scales)
    of_values = weights.T @ cotangents
    return Walk(
        torch.tensor((quarters / 4).astype(np.float64))[None],
        torch.tensor(values.astype(np.float64))[None],
        torch.tensor(cotangents.astype(np.float64))[None],
        quotients(readings, scales)[None],
        quotients(gradients, whole).view(1, length, 3),
        quotients(of_values, whole)[None],
    )


# n, m, and how many steps may mix actions, so that everything has at most 24, or 53, binary digits
WALKS = {
    torch.float32: [(0, 3, 0), (1, 1, 1), (2, 5, 2), (7, 3, 6), (16, 33, 5), (17, 2, 5), (63, 5, 4)],
    torch.float64: [(0, 3, 0), (1, 1, 1), (2, 5, 2), (16, 33, 16), (17, 2, 17), (63, 5, 18)],
}


ALL_WALKS = [(dtype, *size) for dtype, sizes in WALKS.items() for size in sizes]


@ways("superposition", triton=False)
@pytest.mark.parametrize(("dtype", "length", "size", "fractional"), ALL_WALKS)
def test_readings_and_gradients_are_exact(
    dtype: torch.dtype, length: int, size: int, fractional: int, way: Way
) -> None:
    known = walk(length, size, fractional)
    for x in known[3:]:
        assert torch.equal(x, x.to(dtype).double())
    inputs = [x.to(dtype).requires_grad_() for x in known[:2]]
    readings = way.read(inputs)
    assert torch.equal(readings, known.readings.to(dtype))
    for gradient, expected in zip(gradients(readings, inputs, known.cotangents.to(dtype)), known[4:], strict=True):
        assert torch.equal(gradient, expected.to(dtype))
