"""Fixtures for the tests of the stacks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def poisoned_memory() -> Iterator[None]:
    """Memory that nobody has written to yet holds NaN, and operators are deterministic."""
    # On a GPU, products of matrices raise errors in this mode unless the environment has CUBLAS_WORKSPACE_CONFIG.
    torch.use_deterministic_algorithms(True, warn_only=torch.cuda.is_available())
    assert torch.empty(3).isnan().all()
    yield
    torch.use_deterministic_algorithms(False)
