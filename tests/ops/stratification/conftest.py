"""The backends of the steps of the stratification stack."""

from __future__ import annotations

import pytest

from fairseq_stack.ops import _item_state
from tests.helpers import INSTRUCTION_SETS, use_instruction_set


@pytest.fixture(params=["pytorch", *INSTRUCTION_SETS])
def steps(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps in PyTorch, and by the kernels of each instruction set."""
    if request.param == "pytorch":
        monkeypatch.setattr(_item_state, "library", lambda: None)
    else:
        use_instruction_set(request.param, monkeypatch)
