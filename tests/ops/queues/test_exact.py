"""The queue returns the true numbers, which are known in integers: strengths are binary fractions."""

from __future__ import annotations

import pytest
import torch

from tests.ops import exact
from tests.ops.exact import MANTISSA, as_integers, quotients
from tests.ops.queues.inputs import WAYS, compute


@pytest.mark.parametrize("dtype", MANTISSA)
@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("length", [1, 2, 17, 63])
def test_queue_is_exact(length: int, how: str, dtype: torch.dtype) -> None:
    """Strengths are multiples of 1/8, many of which use another up."""
    generator = torch.Generator().manual_seed(length)
    pop, push = torch.randint(13, (2, length), generator=generator)
    values = torch.randint(-50, 51, (length, 3), generator=generator)
    readings = exact.queue(as_integers(pop), as_integers(push), as_integers(values), whole=8)
    inputs = [x[None].to(dtype) for x in (pop / 8.0, push / 8.0, values)]
    assert torch.equal(compute(inputs, how), quotients(readings, 8)[None].to(dtype))
