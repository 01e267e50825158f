"""All backends return the true numbers, which are known in integers: strengths are binary fractions."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import StratificationStackState, stratification_stack
from tests.ops import exact
from tests.ops.exact import MANTISSA, as_integers, quotients


def strengths(length: int, seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Pops and pushes (1, n) that are multiples of 1/8, many of which use another up; values; and the readings."""
    generator = torch.Generator().manual_seed(seed)
    pop, push = torch.randint(13, (2, length), generator=generator)
    values = torch.randint(-50, 51, (length, 3), generator=generator)
    readings = exact.stratification(as_integers(pop), as_integers(push), as_integers(values), whole=8)
    return pop[None] / 8.0, push[None] / 8.0, values[None].float(), quotients(readings, 8)[None]


@pytest.mark.parametrize("dtype", MANTISSA)
@pytest.mark.parametrize("backend", ["reference", "pytorch"])
@pytest.mark.parametrize("length", [0, 1, 2, 16, 17, 63])
def test_stratification_is_exact(length: int, backend: str, dtype: torch.dtype) -> None:
    for seed in range(5):
        *inputs, readings = (x.to(dtype) for x in strengths(length, seed))
        assert torch.equal(stratification_stack(*inputs, backend=backend), readings)


@pytest.mark.parametrize("dtype", MANTISSA)
@pytest.mark.parametrize("length", [1, 2, 16, 17, 63])
def test_stratification_steps_are_exact(length: int, dtype: torch.dtype) -> None:
    *inputs, readings = (x.to(dtype) for x in strengths(length, seed=0))
    state = StratificationStackState.initial(batch_size=1, size=3, dtype=dtype)
    for t in range(length):
        reading, state = state.step(*(x[:, t] for x in inputs))
        assert torch.equal(reading, readings[:, t])
