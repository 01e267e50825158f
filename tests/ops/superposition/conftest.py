"""The backends of the superposition stack."""

from __future__ import annotations

import pytest

from tests.helpers import use_backend
from tests.ops.superposition.inputs import FAST


@pytest.fixture(params=["reference", *FAST])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """All backends, and all instruction sets of the compiled one."""
    return use_backend(request.param, monkeypatch)


@pytest.fixture(params=FAST)
def fast_backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    return use_backend(request.param, monkeypatch)
