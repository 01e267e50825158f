"""The instruction sets of the compiled kernels."""

from __future__ import annotations

import pytest

from tests.helpers import INSTRUCTION_SETS, use_instruction_set


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
