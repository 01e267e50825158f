"""With the parameters of the authors' models, ours compute the authors' logits."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
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
from tests.helpers import assert_normwise_close, each_golden_file

PREFIX = r"parameters/(first\.)?(controller\.rnn\.)?"
HIDDEN = 7
CONTROLLER = {"output": False, "bias": True}


def sup(size: int, **options: bool) -> StackAttention:
    return SuperpositionStackAttention(HIDDEN, size, **options, **CONTROLLER)


STACKS: dict[str, Callable[[], list[StackAttention]]] = {
    "lstm": list,
    "lstm_sup": lambda: [sup(4)],
    "lstm_sup_hidden": lambda: [sup(HIDDEN, push_inputs=True)],
    "lstm_sup_two_stacks": lambda: [sup(3), sup(2)],
    "lstm_strat": lambda: [StratificationStackAttention(HIDDEN, 4, "tanh", **CONTROLLER)],
    "ns_2020": lambda: [
        SymbolStackAttention(
            HIDDEN, 2, 2, states_in_reading=False, original_bottom=True, normalize_transitions=True, **CONTROLLER
        )
    ],
    "rns_2022": lambda: [SymbolStackAttention(HIDDEN, 2, 3, original_bottom=True, **CONTROLLER)],
    "rns_new_bottom": lambda: [SymbolStackAttention(HIDDEN, 2, 3, **CONTROLLER)],
    "vrns_2023": lambda: [NondeterministicStackAttention(HIDDEN, 2, 3, 4, **CONTROLLER)],
    "vrns_zero_bottom": lambda: [NondeterministicStackAttention(HIDDEN, 3, 2, 3, bottom_vector="zero", **CONTROLLER)],
}


@each_golden_file(*(f"models/{pattern}.npz" for pattern in ("lstm*", "ns_*", "rns_*", "vrns_*")))
@pytest.mark.parametrize("stepped", [False, True], ids=["sequence", "steps"])
def test_stack_lstm(path: Path, stepped: bool) -> None:
    golden = np.load(path)
    parameters = {re.sub(PREFIX, "", key): torch.from_numpy(golden[key]) for key in golden if re.match(PREFIX, key)}
    lstm = StackLSTM(3, HIDDEN, STACKS[path.stem]()).double()
    load(lstm, parameters)
    tokens = torch.from_numpy(golden["tokens"])
    state = lstm.initial_state(len(tokens))
    hidden = [state.hidden]
    if stepped:
        inputs = torch.nn.functional.one_hot(tokens, 3).double()
        for t in range(tokens.size(1)):
            output, state = lstm.step(inputs[:, t], state)
            hidden.append(output)
    else:
        hidden.extend(lstm(tokens)[0].unbind(1))
    output = parameters.pop("second.func.linear.weight"), parameters.pop("second.func.linear.bias")
    logits = torch.nn.functional.linear(torch.stack(hidden, dim=1), *output)
    assert not parameters
    assert_normwise_close(logits, golden["logits"], 1e-9, "logits")


# The authors' names of W_a and W_v, and their order of actions: push, pop, no-op for superposition; push, pop.
NAMES = {
    "actions": ("action_layer.linear", "operation_layer"),
    "values": ("push_value_layer.linear", "pushed_vector_layer.0"),
}
ORDER = {SuperpositionStackAttention: [0, 2, 1], StratificationStackAttention: [1, 0]}


@torch.no_grad()
def load(lstm: StackLSTM, parameters: dict[str, Tensor]) -> None:
    """Move the authors' parameters into ours, except for those of the output layer."""
    lstm.gates.weight.copy_(torch.cat([parameters.pop("weight_ih_l0"), parameters.pop("weight_hh_l0")], dim=1))
    lstm.gates.bias.copy_(parameters.pop("bias_ih_l0"))
    for ours, theirs in NAMES.items():
        for kind in ("weight", "bias"):
            targets = {
                stack: getattr(stack, ours).get_parameter(kind)
                for stack in lstm.stacks
                if getattr(stack, ours) in stack.projections
            }
            if not targets:
                continue
            (name,) = (f"{name}.{kind}" for name in theirs if f"{name}.{kind}" in parameters)
            pieces = parameters.pop(name).split([len(target) for target in targets.values()])
            for (stack, target), piece in zip(targets.items(), pieces, strict=True):
                order = ORDER.get(type(stack)) if ours == "actions" else None
                target.copy_(piece if order is None else piece[order])
    if "bottom_vector" in parameters:
        lstm.stacks[0].get_parameter("bottom_logits").copy_(parameters.pop("bottom_vector"))


@each_golden_file("ns_symbols_*.npz")
def test_symbols(path: Path) -> None:
    """The reading is the distribution over states and symbols, and over symbols alone."""
    golden = np.load(path)
    by_top = [torch.from_numpy(golden[name]).flatten(4) for name in ("push", "replace", "pop")]
    actions = torch.cat(by_top, dim=-1).flatten(2)
    _, _, num_states, num_symbols = golden["push"].shape[:4]
    for states_in_reading in (True, False):
        for normalize_transitions in (True, False):  # the weights in the file sum to 1 already
            stack = SymbolStackAttention(
                HIDDEN, num_states, num_symbols, states_in_reading=states_in_reading,
                normalize_transitions=normalize_transitions, **CONTROLLER,
            ).double()  # fmt: skip
            readings = stack.readings(actions, stack.activated(actions)).flatten(2)
            expected = golden["readings_with_states" if states_in_reading else "readings_symbols_only"]
            assert_normwise_close(readings, expected, 1e-9)
