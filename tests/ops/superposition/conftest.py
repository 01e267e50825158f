"""The backends of the superposition stack."""

from __future__ import annotations

import pytest

from tests.helpers import use_backend, use_instruction_set
from tests.ops.superposition.inputs import FAST


@pytest.fixture(params=["reference", *FAST])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """All backends, and all instruction sets of the compiled one."""
    return use_backend(request.param, monkeypatch)


@pytest.fixture(params=FAST)
def fast_backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    return use_backend(request.param, monkeypatch)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skips the test where the compiled backend cannot run."""
    use_instruction_set("baseline", monkeypatch)
