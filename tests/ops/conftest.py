"""Fixtures for the tests of the stacks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from tests.helpers import INSTRUCTION_SETS, use_backend, use_instruction_set
from tests.ops.stacks import FAST, Way


@pytest.fixture(autouse=True)
def poisoned_memory() -> Iterator[None]:
    """Memory that nobody has written to yet holds NaN, and operators are deterministic."""
    # On a GPU, products of matrices raise errors in this mode unless the environment has CUBLAS_WORKSPACE_CONFIG.
    torch.use_deterministic_algorithms(True, warn_only=torch.cuda.is_available())
    assert torch.empty(3).isnan().all()
    yield
    torch.use_deterministic_algorithms(False)


@pytest.fixture(params=INSTRUCTION_SETS)
def instruction_set(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each of them, for the compiled backend."""
    name: str = request.param
    use_instruction_set(name, monkeypatch)
    return name


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skips the test where the compiled backend cannot run."""
    use_instruction_set("baseline", monkeypatch)


@pytest.fixture
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Way:
    """A way to compute the readings of a stack."""
    stack, name = request.param
    return Way(stack, name, monkeypatch)


@pytest.fixture(params=["reference", *FAST])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """All backends of a stack with kernels for CPUs, and all their instruction sets."""
    return use_backend(request.param, monkeypatch)


@pytest.fixture(params=FAST)
def fast_backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same without the reference."""
    return use_backend(request.param, monkeypatch)
