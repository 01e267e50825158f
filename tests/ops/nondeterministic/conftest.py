"""The backends of the nondeterministic stack."""

from __future__ import annotations

import pytest

from fairseq_stack.ops.nondeterministic import _panels, state
from fairseq_stack.ops.nondeterministic._native_columns import NativeColumns
from fairseq_stack.ops.nondeterministic._panel_columns import PanelColumns
from tests.helpers import use_backend
from tests.ops.nondeterministic.inputs import FAST


@pytest.fixture(params=["reference", *FAST])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """All backends, and all instruction sets of the compiled one."""
    return use_backend(request.param, monkeypatch)


@pytest.fixture(params=FAST)
def fast_backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    return use_backend(request.param, monkeypatch)


@pytest.fixture(params=["kernels", "pytorch"])
def columns(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> type:
    """The type of the columns of the states that a test makes."""
    if request.param == "kernels":
        return NativeColumns
    monkeypatch.setattr(state, "library", lambda: None)
    monkeypatch.setattr(_panels, "FEWEST", 3)  # so that short sequences, too, are in several panels
    return PanelColumns
