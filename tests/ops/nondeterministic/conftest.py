"""The backends of the nondeterministic stack."""

from __future__ import annotations

import pytest

from tests.ops.nondeterministic.inputs import FAST, choose


@pytest.fixture(params=["reference", *FAST])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """All backends, both kinds of arithmetic of the one in PyTorch, and all instruction sets of the compiled one."""
    return choose(request.param, monkeypatch)


@pytest.fixture(params=FAST)
def fast_backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    return choose(request.param, monkeypatch)
