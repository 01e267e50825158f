"""LSTMs with stacks, for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from fairseq_stack.modules import (
    NondeterministicStackAttention,
    StackAttention,
    StackLSTM,
    StratificationStackAttention,
    SuperpositionStackAttention,
    SymbolStackAttention,
)
from tests.helpers import use_instruction_set

INPUT, HIDDEN = 3, 5
CONTROLLER: dict[str, Any] = {"output": False, "bias": True}


def sup(size: int, **options: Any) -> StackAttention:
    return SuperpositionStackAttention(HIDDEN, size, **options, **CONTROLLER)


STACKS: dict[str, Callable[[], list[StackAttention]]] = {
    "none": list,
    "sup": lambda: [sup(4)],
    "hidden": lambda: [sup(HIDDEN, push_inputs=True)],
    "strat": lambda: [StratificationStackAttention(HIDDEN, 2, "tanh", **CONTROLLER)],
    "nd": lambda: [NondeterministicStackAttention(HIDDEN, 2, 2, 3, **CONTROLLER)],
    "ns": lambda: [SymbolStackAttention(HIDDEN, 2, 3, **CONTROLLER)],
    "original-bottom": lambda: [SymbolStackAttention(HIDDEN, 2, 2, original_bottom=True, **CONTROLLER)],
    "log-weights": lambda: [SymbolStackAttention(HIDDEN, 2, 2, read_log_weights=True, **CONTROLLER)],
    "limited-log-weights": lambda: [
        SymbolStackAttention(HIDDEN, 2, 2, read_log_weights=True, original_bottom=True, window=3, **CONTROLLER)
    ],
    "limited": lambda: [
        NondeterministicStackAttention(HIDDEN, 2, 2, 3, window=2, **CONTROLLER),
        SymbolStackAttention(HIDDEN, 2, 2, original_bottom=True, window=3, **CONTROLLER),
    ],
    "three": lambda: [sup(2), NondeterministicStackAttention(HIDDEN, 1, 2, 2, **CONTROLLER), sup(3)],
}
# Networks with the stacks called "three", unless their names say "none".
NETWORKS: dict[str, dict[str, Any]] = {
    "reading-in-output": {"reading_in_output": True},
    "initial-state": {"learned_initial_state": True},
    "layers": {"num_layers": 3},
    "layers-none": {"num_layers": 2, "learned_initial_state": True},
    "rnn": {"controller": "rnn"},
    "rnn-layers": {"num_layers": 3, "controller": "rnn", "learned_initial_state": True, "reading_in_output": True},
}
STACKS |= {name: STACKS["none" if "none" in name else "three"] for name in NETWORKS}


def build(name: str, recurrent_dropout: float = 0.0) -> StackLSTM:
    return StackLSTM(INPUT, HIDDEN, STACKS[name](), recurrent_dropout, **NETWORKS.get(name, {})).double()


def random_inputs(batch_size: int = 3, length: int = 6) -> Tensor:
    return torch.randn(batch_size, length, INPUT, dtype=torch.float64)


def counted(owner: type, method: str, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that grows with each call of a method, in a test that the compiled kernels run in."""
    use_instruction_set("baseline", monkeypatch)
    calls: list[int] = []
    original = getattr(owner, method)

    def count(self: Any, *arguments: Any) -> Any:
        calls.append(1)
        return original(self, *arguments)

    monkeypatch.setattr(owner, method, count)
    return calls
