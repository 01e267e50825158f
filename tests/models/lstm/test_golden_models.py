"""With the parameters of the authors' models, ours compute the authors' logits."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fairseq_stack.modules import StratificationStackAttention, SuperpositionStackAttention
from tests.helpers import assert_normwise_close, each_golden_file
from tests.models.building import build_language_model, make_dictionary

FLAGS: dict[str, list[str]] = {
    "lstm": [],
    "lstm_sup": ["--stack=sup-4"],
    "lstm_sup_hidden": ["--stack=sup-7", "--push-hidden-state"],
    "lstm_sup_two_stacks": ["--stack=sup-3+sup-2"],
    "lstm_strat": ["--stack=strat-4"],
    "ns_2020": ["--stack=ns-2-2", "--normalize-transitions", "--no-states-in-reading", "--original-bottom"],
    "rns_2022": ["--stack=ns-2-3", "--original-bottom"],
    "rns_new_bottom": ["--stack=ns-2-3"],
    "vrns_2023": ["--stack=nd-2-3-4"],
    "vrns_zero_bottom": ["--stack=nd-3-2-3", "--bottom-vector=zero"],
}
PREFIX = r"parameters/(first\.)?(controller\.rnn\.)?"
# The authors' names of W_a and W_v, and the orders of their actions: push, pop, no-op, and push, pop.
NAMES = {
    "actions": ("action_layer.linear", "operation_layer"),
    "values": ("push_value_layer.linear", "pushed_vector_layer.0"),
}
ORDERS: dict[type, list[int]] = {SuperpositionStackAttention: [0, 2, 1], StratificationStackAttention: [1, 0]}


@torch.no_grad()
@each_golden_file(*(f"models/{pattern}.npz" for pattern in ("lstm*", "ns_*", "rns_*", "vrns_*")))
@pytest.mark.parametrize("incremental", [False, True], ids=["sequence", "steps"])
def test_language_model(path: Path, incremental: bool) -> None:
    golden = np.load(path)
    dictionary = make_dictionary(3)
    flags = ["--compact-vocab", "--output-bias", "--decoder-hidden-size=7", *FLAGS[path.stem]]
    model = build_language_model("stack_lstm_lm", dictionary, *flags).double().eval()
    parameters = {re.sub(PREFIX, "", key): torch.from_numpy(golden[key]) for key in golden if re.match(PREFIX, key)}
    load(model, parameters)
    assert not parameters, f"not in our model: {list(parameters)}"
    symbols = [dictionary.index(f"w{symbol}") for symbol in range(3)]
    tokens = torch.tensor(symbols)[torch.from_numpy(golden["tokens"])]
    tokens = torch.cat([torch.full((len(tokens), 1), dictionary.eos()), tokens], dim=1)
    if incremental:
        state: dict[str, Any] = {}
        lengths = range(1, tokens.size(1) + 1)
        steps = [model.decoder(tokens[:, :length], incremental_state=state)[0] for length in lengths]
        logits = torch.cat(steps, dim=1)
    else:
        logits, _ = model(tokens)
    assert_normwise_close(logits[..., [*symbols, dictionary.eos()]], golden["logits"], 1e-9, "logits")
    assert logits.isfinite().sum() == golden["logits"].size


def load(model: Any, parameters: dict[str, Tensor]) -> None:
    """Move the authors' parameters into ours, all of them."""
    lstm, output = model.decoder.lstm, model.decoder.output_projection
    weights = [parameters.pop("weight_ih_l0"), parameters.pop("weight_hh_l0")]
    ours = {name: lstm.gates.get_parameter(name) for name in ("weight", "bias")}
    ours |= {f"output {name}": output.get_parameter(name) for name in ("weight", "bias")}
    theirs = {"weight": torch.cat(weights, dim=1), "bias": parameters.pop("bias_ih_l0")}
    theirs |= {f"output {name}": parameters.pop(f"second.func.linear.{name}") for name in ("weight", "bias")}
    for projection, names in NAMES.items():
        stacks = [stack for stack in lstm.stacks if getattr(stack, projection) in stack.projections]
        for name in ("weight", "bias") if stacks else ():
            (stacked,) = (parameters.pop(f"{layer}.{name}") for layer in names if f"{layer}.{name}" in parameters)
            targets = [getattr(stack, projection).get_parameter(name) for stack in stacks]
            for number, piece in enumerate(stacked.split([len(target) for target in targets])):
                key = f"{projection} {name} {number}"
                order = ORDERS.get(type(stacks[number])) if projection == "actions" else None
                ours[key], theirs[key] = targets[number], piece if order is None else piece[order]
    if "bottom_vector" in parameters:
        ours["bottom"] = lstm.stacks[0].get_parameter("bottom_logits")
        theirs["bottom"] = parameters.pop("bottom_vector")
    assert {*map(id, ours.values())} == {*map(id, model.parameters())}
    for key, target in ours.items():
        assert target.shape == theirs[key].shape, key
        target.copy_(theirs[key])
