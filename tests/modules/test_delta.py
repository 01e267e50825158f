"""Attention by the delta rule, with a stack and without: the authors' values, and what the options do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fairseq_stack.modules import DeltaAttention, DeltaStackAttention
from fairseq_stack.modules.delta_stack import DeltaStackState
from fairseq_stack.ops import DeltaRuleState, PointerStackState, delta_rule, pointer_stack
from tests.helpers import assert_agree, assert_normwise_close, each_golden_file

NAMES = {
    "W_q": "queries.weight",
    "W_k": "keys.weight",
    "W_v": "values.weight",
    "W_b": "strengths.weight",
    "W_o": "output.weight",
    "W_a": "actions.weight",
    "W_f": "decays.weight",
    "W_g": "gates.weight",
    "A_log": "log_rates",
    "dt_bias": "decay_bias",
    "kappa": "kappa",
    "norm": "norm",
    "conv_q": "query_convolution.weight",
    "conv_k": "key_convolution.weight",
    "conv_v": "value_convolution.weight",
}
"""The names of the golden files, and ours."""
LAYERS = ("modern/delta*.npz", "modern/gdelta*.npz", "modern/product*.npz", "modern/gproduct*.npz")


class Golden:
    """A golden file: the authors' layer with random weights."""

    def __init__(self, path: Path) -> None:
        self._arrays = np.load(path)

    def __getitem__(self, name: str) -> Tensor:
        return torch.tensor(self._arrays[name])

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def number(self, name: str, otherwise: int = 0) -> int:
        return int(self._arrays[name]) if name in self else otherwise

    def rows(self, values: Tensor, per_step: int = 0) -> Tensor:
        """(B, n U, H, ...) or (B, n, H, ...) as rows (B H, n, U, ...) or (B H, n, ...)."""
        values = values.movedim(2, 1).flatten(0, 1)
        return values.unflatten(1, (-1, per_step)) if per_step else values

    def layer(self) -> DeltaAttention:
        options: dict[str, Any] = {"model_size": self["inputs"].size(2), "convolution": self.number("conv_size")}
        options |= {name: self.number(name) for name in ("key_size", "value_size", "beta_scale")}
        options["num_heads"] = self.number("heads")
        if "cells" in self:
            layer: DeltaAttention = DeltaStackAttention(**options, num_cells=self.number("cells"))
        else:
            options |= {"num_updates": self.number("updates", 1), "decay": bool(self.number("decay"))}
            layer = DeltaAttention(**options, output_gate=bool(self.number("output_gate")))
        layer.double()
        for name, parameter in self.parameters(layer).items():
            parameter.data.copy_(self[name])
        return layer

    @staticmethod
    def parameters(layer: DeltaAttention) -> Mapping[str, Tensor]:
        """All parameters, by the names of the file."""
        parameters = dict(layer.named_parameters())
        return {name: parameters.pop(ours) for name, ours in NAMES.items() if ours in parameters} | parameters


@each_golden_file(*LAYERS)
def test_golden_layers(path: Path) -> None:
    """Outputs and all gradients, outputs by steps, and what the state holds in the end."""
    golden = Golden(path)
    layer, inputs = golden.layer(), golden["inputs"].requires_grad_()
    outputs, state = layer(inputs), layer.initial_state(len(inputs))
    assert_normwise_close(outputs, golden["outputs"], 1e-9, "outputs")
    leaves = {"inputs": inputs, **golden.parameters(layer)}
    gradients = torch.autograd.grad(outputs, [*leaves.values()], golden["cotangent"])
    for name, gradient in zip(leaves, gradients, strict=True):
        assert_normwise_close(gradient, golden[f"grad_{name}"], 1e-9, name)
    for t, x in enumerate(inputs.unbind(1)):
        output, state = layer.step(x, state)
        assert_normwise_close(output, golden["outputs"][:, t], 1e-9, f"step {t}")
    assert_normwise_close(state.memory.rows.memory, golden["final_memory"].flatten(0, 1), 1e-9, "memory")
    for name, held in {"q": state.queries, "k": state.keys, "v": state.values}.items():
        if f"final_conv_{name}" in golden and held.size(1):
            wanted = golden[f"final_conv_{name}"].mT[:, -held.size(1) :]
            assert_normwise_close(held, wanted, 1e-9, f"the convolution of {name}")
    if isinstance(state, DeltaStackState):
        assert_normwise_close(state.stack.rows.stack, golden["final_stack"].flatten(0, 1), 1e-9, "stack")
        assert_normwise_close(state.stack.rows.position, golden["final_raw_pointer"].flatten(), 1e-9, "position")
        assert_normwise_close(state.reading, golden["final_reading"], 1e-9, "reading")


@each_golden_file(*LAYERS)
@pytest.mark.parametrize("backend", ["reference", "pytorch"])
def test_golden_ops(path: Path, backend: str) -> None:
    """The pointer stack alone, and the delta rule without one."""
    golden = Golden(path)
    if "cells" in golden:
        leaves = {name: golden[name].requires_grad_() for name in ("push", "pop", "values", "kappa")}
        push, pop, values = (golden.rows(leaves[name]) for name in ("push", "pop", "values"))
        cells, kappa = golden.number("cells"), leaves["kappa"].expand(len(push))
        readings = pointer_stack(push, pop, values, kappa, cells=cells, backend=backend) / cells**0.5
        expected = golden.rows(golden["readings"])
    else:
        decays = ["log_decays"] if golden.number("decay") else []
        leaves = {name: golden[name].requires_grad_() for name in ("queries", "keys", "values", "betas", *decays)}
        updates = golden.number("updates", 1)
        written = [golden.rows(leaves[name], updates) for name in ("keys", "values", "betas")]
        asked = [golden.rows(leaves[name]) for name in ("queries", *decays)]
        readings = delta_rule(asked[0], *written, *asked[1:], backend=backend)
        expected = golden.rows(golden["memory_readings"])
    assert_normwise_close(readings, expected, 1e-9, "readings")
    gradients = torch.autograd.grad(readings, [*leaves.values()], golden.rows(golden["cotangent_readings"]))
    for name, gradient in zip(leaves, gradients, strict=True):
        assert_normwise_close(gradient, golden[f"grad_readings_{name}"], 1e-9, name)


@pytest.mark.parametrize("num_updates", [1, 3, 70], ids=lambda x: f"{x} updates")
@pytest.mark.parametrize("length", [31, 64, 65, 130])
def test_chunks(length: int, num_updates: int) -> None:
    """The end of a chunk makes no difference, nor does a decay that leaves nothing or a state in between."""
    if length * num_updates > 1000:
        length //= 30
    keys = torch.nn.functional.normalize(torch.randn(2, length, num_updates, 3).double(), dim=-1)
    arguments = [torch.randn(2, length, 3).double(), keys, torch.randn(2, length, num_updates, 4).double()]
    arguments += [2 * torch.rand(2, length, num_updates).double(), -torch.rand(2, length).double()]
    arguments[4][:, length // 2] = -800
    arguments = [x.requires_grad_() for x in arguments]
    expected = delta_rule(*arguments, backend="reference")
    assert_agree(delta_rule(*arguments, backend="pytorch"), expected, arguments, 1e-12, 1e-11)
    state = DeltaRuleState.initial(batch_size=2, key_size=3, value_size=4, dtype=torch.float64)
    first, state = state.extend(*(x[:, : length // 3] for x in arguments))
    second, _ = state.extend(*(x[:, length // 3 :] for x in arguments))
    assert_agree(torch.cat([first, second], 1), expected, arguments, 1e-12, 1e-11)


@pytest.mark.parametrize("decay", [-40.0, -1e5, -3e38])
def test_strong_decays_in_float32(decay: float) -> None:
    """They do not make the steps after them less exact."""
    keys = torch.nn.functional.normalize(torch.randn(2, 60, 1, 3), dim=-1)
    arguments = [torch.randn(2, 60, 3), keys, torch.randn(2, 60, 1, 4), torch.rand(2, 60, 1), -torch.rand(2, 60)]
    arguments[4][:, ::20] = decay
    exact = [x.double().requires_grad_() for x in arguments]
    arguments = [x.requires_grad_() for x in arguments]
    expected, readings = delta_rule(*exact, backend="reference"), delta_rule(*arguments)
    assert_normwise_close(readings, expected, 1e-6, "readings")
    gradients = (torch.autograd.grad(x.sum(), leaves) for x, leaves in ((readings, arguments), (expected, exact)))
    for i, (gradient, of_exact) in enumerate(zip(*gradients, strict=True)):
        assert_normwise_close(gradient, of_exact, 2e-6, f"{i}")


def test_a_pointer_stack_has_a_cell() -> None:
    with pytest.raises(ValueError, match="cells: expected at least 1, got 0"):
        PointerStackState.initial(torch.zeros(1), size=1, cells=0)
    with pytest.raises(ValueError, match="cells: expected at least 1, got 0"):
        pointer_stack(torch.zeros(1, 2), torch.zeros(1, 2), torch.zeros(1, 2, 1), torch.zeros(1), cells=0)


def test_a_sharp_pointer_stack_is_a_stack() -> None:
    """With certain actions and a large kappa: the top is read, and an empty stack reads nothing."""
    operations = ["push", "push", "pop", "push", "pop", "pop", "push"]
    push, pop = (torch.tensor([[float(x == name) for x in operations]]).double() for name in ("push", "pop"))
    kappa = torch.full((1,), 50.0).double()
    weights = pointer_stack(push, pop, torch.eye(7).double()[None], kappa, cells=4)
    tops = [0, 1, 0, 3, 0, None, 6]
    expected = torch.tensor([[float(i == top) for i in range(7)] for top in tops]).double()
    assert_normwise_close(weights[0], expected, 1e-12)


@pytest.mark.parametrize("clamped", [False, True])
def test_pops_from_an_empty_stack(clamped: bool) -> None:
    """They are a debt that later pushes pay back, unless the pointer is clamped."""
    pop, push = torch.tensor([[1.0, 1, 0, 0]]).double(), torch.tensor([[0.0, 0, 1, 1]]).double()
    state = PointerStackState.initial(torch.full((1,), 50.0).double(), size=1, cells=4, clamped=clamped)
    _, state = state.extend(push, pop, torch.arange(4.0).double()[None, :, None])
    assert state.position.item() == (2 if clamped else 0)


@pytest.mark.parametrize(("reading", "is_affected"), [("previous", False), ("current", True)])
def test_reading(reading: Any, is_affected: bool) -> None:
    """Whether an action affects the output of its own step."""
    layer, inputs = DeltaStackAttention(6, 2, 3, 2, 4, reading=reading).double(), torch.randn(2, 1, 6).double()
    (gradient,) = torch.autograd.grad(layer(inputs).square().sum(), layer.actions.weight)
    assert bool(gradient.count_nonzero()) == is_affected


def test_more_cells() -> None:
    """Readings keep their scale if the first number of cells is among the parameters."""
    inputs = torch.randn(2, 9, 6).double()
    for kept, factor in ((True, 1.0), (False, 0.5)):
        few, many = (DeltaStackAttention(6, 2, 3, 2, cells, kappa=30, kept_scale=kept).double() for cells in (16, 64))
        many.load_state_dict(few.state_dict())
        assert all(value.is_floating_point() for value in few.state_dict().values())  # can be averaged
        assert_normwise_close(many.readings_of(inputs), factor * few.readings_of(inputs), 1e-12)


def test_start() -> None:
    """Kappa, the weights of actions and what is trained, as the options say; rates of decay from 0.001 to 0.1."""
    torch.manual_seed(0)
    plain = DeltaStackAttention(6, 2, 3, 2, 4)
    torch.manual_seed(0)
    other = DeltaStackAttention(6, 2, 3, 2, 4, kappa=4.0, frozen_kappa=True, action_gain=8.0)
    assert plain.kappa.item() == 2 and other.kappa.item() == 4
    assert plain.kappa.requires_grad and not other.kappa.requires_grad
    assert_normwise_close(other.actions.weight, 8 * plain.actions.weight, 1e-6)
    gated = DeltaAttention(6, 200, 3, 2, decay=True)
    assert gated.decay_bias is not None and gated.log_rates is not None
    rates = torch.nn.functional.softplus(gated.decay_bias)
    assert 9e-4 < rates.min() < 2e-3 and 0.05 < rates.max() <= 0.101
    assert 12 < gated.log_rates.exp().max() <= 16


def test_states_without_convolutions() -> None:
    """They have the dtype and the device of the layer."""
    state = DeltaAttention(6, 2, 3, 2, convolution=0).to("meta", torch.float64).initial_state(3)
    assert all(x.dtype == torch.float64 and x.device.type == "meta" for x in (state.queries, state.keys, state.values))


def test_float32() -> None:
    """At 400 steps, relative to float64."""
    layer, inputs = DeltaStackAttention(8, 2, 6, 5, 64), torch.randn(2, 400, 8)
    outputs = layer(inputs)
    assert_normwise_close(outputs, layer.double()(inputs.double()), 1e-5)
