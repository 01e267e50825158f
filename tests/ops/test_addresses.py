"""Addresses of the pointer stack of DeltaStack."""

from __future__ import annotations

import pytest
import torch

from fairseq_stack.ops.pointer import addresses_of


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kappa", [-1.0, 2.0, 8.0, 30.0])
def test_products_of_addresses_are_not_subnormal(dtype: torch.dtype, kappa: float) -> None:
    """Arithmetic with subnormal numbers is up to 45 times as slow."""
    positions = torch.linspace(-1, 300, 700, dtype=torch.float64)[None]
    addresses = addresses_of(positions, torch.full((1,), kappa, dtype=dtype), 300)[0]
    least = addresses[addresses > 0].min()
    assert least.double() ** 2 >= torch.finfo(dtype).tiny * (1 - 1e-6)
    torch.testing.assert_close(addresses.sum(-1), torch.ones(700, dtype=dtype))
