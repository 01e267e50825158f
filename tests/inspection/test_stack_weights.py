"""The weights of the pushed vectors in the readings of nondeterministic stack attention."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from fairseq_stack.hub.interface import load
from fairseq_stack.inspection.stack_weights import recorded_stack_weights, stack_weights
from fairseq_stack.modules import NondeterministicStackAttention, SuperpositionStackAttention, SymbolStackAttention
from tests.helpers import assert_normwise_close
from tests.inspection.checkpoints import write_translation_model

STATES, SYMBOLS, SIZE, MODEL_SIZE = 2, 3, 4, 6


@pytest.fixture
def attention() -> NondeterministicStackAttention:
    return NondeterministicStackAttention(MODEL_SIZE, STATES, SYMBOLS, SIZE).double()


def force(attention: NondeterministicStackAttention, transition: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
    """Make ``transition`` fill in log weights (push, replace, pop) that then hold whatever the inputs are."""
    actions = torch.full((attention.actions.out_features,), -200.0, dtype=torch.float64)
    transition(*attention.transitions(actions))
    weight = torch.zeros_like(attention.actions.weight)
    weight[:, 0] = actions
    attention.actions.weight = nn.Parameter(weight)


def ones(length: int) -> Tensor:
    return torch.ones(1, length, MODEL_SIZE, dtype=torch.float64)


def recorded(model: nn.Module, inputs: Tensor) -> dict[str, Tensor]:
    with recorded_stack_weights(model) as weights:
        model(inputs)
    return weights


def test_weights_are_shares(attention: NondeterministicStackAttention) -> None:
    inputs = torch.randn(2, 5, MODEL_SIZE, dtype=torch.float64)
    (weights,) = recorded(nn.Sequential(attention), inputs).values()
    assert weights.shape == (2, 5, 6)
    assert (weights >= 0).all()
    assert_normwise_close(weights.sum(-1), torch.ones(2, 5, dtype=torch.float64), 1e-12)
    assert not weights[:, :, 1:].triu(1).any(), "a reading contains a vector that is pushed later"


def test_pushes_only_show_the_newest_vector(attention: NondeterministicStackAttention) -> None:
    force(attention, lambda push, replace, pop: push.fill_(0.0))
    weights = recorded(attention, ones(4))[""]
    assert_normwise_close(weights[0, :, 1:], torch.eye(4, dtype=torch.float64), 1e-12)


def test_replacing_keeps_the_bottom(attention: NondeterministicStackAttention) -> None:
    force(attention, lambda push, replace, pop: replace.fill_(0.0))
    weights = recorded(attention, ones(3))[""]
    assert_normwise_close(weights[0, :, 0], torch.ones(3, dtype=torch.float64), 1e-12)


def test_limited_memory(attention: NondeterministicStackAttention) -> None:
    """Only the last two vectors have weights, and the bottom counts as pushed at step 0."""
    attention.window = 2
    weights = recorded(attention, torch.randn(1, 5, MODEL_SIZE, dtype=torch.float64))[""][0]
    remembered = torch.ones(5, 6).tril(1).triu(0)
    assert torch.equal(weights.ne(0), remembered.bool())


@pytest.mark.parametrize("window", [None, 2, 5])
def test_the_original_bottom(window: int | None) -> None:
    """What the first step pushes is the bottom of the stack, and a limited memory forgets it as if pushed at step 1."""
    stack = SymbolStackAttention(MODEL_SIZE, STATES, SYMBOLS, original_bottom=True, window=window).double()
    weights = recorded(stack, torch.randn(1, 5, MODEL_SIZE, dtype=torch.float64))[""][0]
    pushed = torch.cat([weights[:, :1] + weights[:, 1:2], weights[:, 2:]], dim=1)
    remembered = torch.ones(5, 5).tril(0).triu(1 - (window or 5))
    assert torch.equal(pushed.ne(0), remembered.bool())
    assert_normwise_close(pushed.sum(1), torch.ones(5, dtype=torch.float64), 1e-12)


def test_every_nondeterministic_sublayer_is_recorded_and_no_other(attention: NondeterministicStackAttention) -> None:
    other = NondeterministicStackAttention(MODEL_SIZE, 1, 2, SIZE).double()
    sup = SuperpositionStackAttention(MODEL_SIZE, SIZE).double()
    model = nn.Sequential(attention, sup, other)
    inputs = torch.randn(1, 3, MODEL_SIZE, dtype=torch.float64)
    plain = model(inputs)
    assert list(recorded(model, inputs)) == ["0", "2"]
    assert torch.equal(model(inputs), plain)
    assert not any(module._forward_pre_hooks for module in model.modules()), "a hook is left"


def test_a_model_without_stack_has_none() -> None:
    assert recorded(nn.Linear(MODEL_SIZE, 2).double(), ones(2)) == {}


@pytest.mark.parametrize(("layers", "is_nd"), [("sdpa,nd-1-2-3", True), ("sdpa,sup-3", False)], ids=["nd", "sup"])
def test_weights_of_a_checkpoint(tmp_path: Path, layers: str, is_nd: bool) -> None:
    checkpoint = tmp_path / "checkpoint.pt"
    write_translation_model(tmp_path / "data", checkpoint, layers)
    hub = load(checkpoint, tmp_path / "data")
    if not is_nd:
        assert stack_weights(hub, "w0 w1", "w0") == []
        return
    encoder, decoder = stack_weights(hub, "w0 w1", "w0 w1 w1 w0")
    assert (encoder.layer, encoder.inputs) == ("encoder.layers.1", ("w0", "w1", "</s>"))
    assert (decoder.layer, decoder.inputs) == ("decoder.layers.1", ("</s>", "w0", "w1", "w1", "w0"))
    assert encoder.weights.shape == (3, 4)
    weights = decoder.weights
    assert weights.shape == (5, 6)
    _, other = stack_weights(hub, "w0 w1", "w0 w1 w0 w0")
    assert_normwise_close(other.weights[:3], weights[:3], 1e-6)
    assert not torch.allclose(other.weights[3:], weights[3:])
    _, another = stack_weights(hub, "w1 w0", "w0 w1 w1 w0")
    assert not torch.allclose(another.weights, weights), "the source does not matter"
    _, own = stack_weights(hub, "w0 w1")
    _, given = stack_weights(hub, "w0 w1", hub.translate("w0 w1"))
    assert torch.equal(own.weights, given.weights)
