"""The columns of the states of the nondeterministic stack."""

from __future__ import annotations

import pytest

from fairseq_stack.ops.nondeterministic import _panels, state
from fairseq_stack.ops.nondeterministic._native_columns import NativeColumns
from fairseq_stack.ops.nondeterministic._panel_columns import PanelColumns


@pytest.fixture(params=["kernels", "pytorch"])
def columns(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> type:
    """The type of the columns of the states that a test makes."""
    if request.param == "kernels":
        return NativeColumns
    monkeypatch.setattr(state, "library", lambda: None)
    monkeypatch.setattr(_panels, "FEWEST", 3)  # so that short sequences, too, are in several panels
    return PanelColumns
