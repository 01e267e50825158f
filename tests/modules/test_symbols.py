"""The stack without vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from fairseq_stack.modules import SymbolStackAttention
from tests.helpers import assert_normwise_close, each_golden_file

SIZE = 6


@each_golden_file("ns_symbols_*.npz")
@pytest.mark.parametrize("normalize_transitions", [False, True], ids=["as-they-are", "normalised-again"])
def test_golden_readings(path: Path, normalize_transitions: bool) -> None:
    """The reading is the distribution over states and symbols, or over symbols alone. The weights sum to 1 already."""
    golden = np.load(path)
    by_top = [torch.from_numpy(golden[name]).flatten(4) for name in ("push", "replace", "pop")]
    actions = torch.cat(by_top, dim=-1).flatten(2)
    sizes = golden["push"].shape[2:4]
    for states_in_reading, name in ((True, "readings_with_states"), (False, "readings_symbols_only")):
        stack = SymbolStackAttention(
            SIZE, *sizes, states_in_reading=states_in_reading, normalize_transitions=normalize_transitions
        ).double()
        readings = stack.readings(actions, stack.activated(actions)).flatten(2)
        assert_normwise_close(readings, golden[name], 1e-9, name)


def test_the_original_bottom_is_never_read_and_what_the_first_step_pushes_is_never_popped() -> None:
    """All log weights are 0, except that the symbol 1 is pushed once, and 0 afterwards; then all is popped."""
    stack = SymbolStackAttention(SIZE, 1, 2, original_bottom=True)
    push = torch.zeros(1, 5, 1, 2, 1, 2)
    push[:, 0, ..., 0] = push[:, 1:, ..., 1] = -torch.inf
    push[:, 3:] = -torch.inf
    never, pop = torch.full_like(push, -torch.inf), torch.zeros(1, 5, 1, 2, 1)
    pop[:, 1:3] = -torch.inf
    by_top = torch.cat([push.flatten(4), never.flatten(4), pop], dim=-1).flatten(2)
    readings = stack.readings(by_top, torch.ones(1, 5, 1)).flatten(2)[0, :, 1]
    assert readings.tolist() == [1, 0, 0, 0, 1]  # 1 | 10 | 100 | 10 | 1
