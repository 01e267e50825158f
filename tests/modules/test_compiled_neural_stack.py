"""All steps of a neural stack as one compiled operation, beside its steps one by one."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import pytest
import torch
from torch import Tensor

from fairseq_stack.modules import neural_stack
from fairseq_stack.modules.neural_stack import CELLS, MEMORIES, BufferedNeuralStack, Controller, NeuralStack, Step
from tests.helpers import assert_agree, assert_normwise_close
from tests.modules.lstms import counted


@pytest.fixture(autouse=True)
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The steps that are taken one by one."""
    return counted(Controller, "_control", monkeypatch)


def fields(actual: Step | tuple[Tensor, Step]) -> dict[str, Tensor]:
    """All that a network computes."""
    outputs = {} if isinstance(actual, Step) else {"outputs": actual[0]}
    every = actual if isinstance(actual, Step) else actual[1]
    return outputs | {name: x for name, x in every._asdict().items() if x is not None}


@pytest.mark.parametrize(("controller", "pushed"), [*zip(CELLS, cycle(neural_stack.PUSHED), strict=False)])
@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("kind", [NeuralStack, BufferedNeuralStack])
def test_values_and_gradients_are_those_of_the_steps(
    kind: type[NeuralStack] | type[BufferedNeuralStack], controller: str, memory: str, pushed: str, taken: list[int]
) -> None:
    """Of each part of what a network computes, with more steps than inputs; tests/ops/test_networks.py has others."""
    model = kind(3, 3, controller=controller, hidden_size=4, memory=memory, pushed=pushed, output_size=2).double()
    for parameter in model.parameters():
        parameter.data.add_(torch.randn_like(parameter), alpha=0.3)
    x = torch.rand(2, 5, 3, dtype=torch.float64, requires_grad=True)
    actual = fields(model(x, steps=8))
    assert not taken
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neural_stack, "loop_is_compiled", lambda *_: False)
        expected = fields(model(x, steps=8))
    assert len(taken) == 8
    assert actual.keys() == expected.keys()
    for name, wanted in expected.items():
        if wanted.requires_grad:
            assert_agree(actual[name], wanted, [x, *model.parameters()])
        else:
            assert_normwise_close(actual[name], wanted, 1e-12, name)


class TestStepsOneByOne:
    """Where the compiled operation cannot run, the steps are taken as ever."""

    def assert_stepped(self, model: NeuralStack, x: Tensor, taken: list[int]) -> None:
        steps = model(x)
        assert len(taken) == x.size(1)
        assert steps.output.shape == (*x.shape[:2], model.output_size)

    def test_with_weights_that_do_not_fit_the_caches(self, taken: list[int]) -> None:
        self.assert_stepped(NeuralStack(3, 2, controller="lstm", hidden_size=128), torch.rand(2, 5, 3), taken)

    def test_without_kernels(self, taken: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
        model, x = NeuralStack(3, 2, controller="gru").double(), torch.rand(2, 5, 3).double()
        expected = model(x)
        assert not taken
        monkeypatch.setattr("fairseq_stack.ops._backends.library", lambda: None)
        self.assert_stepped(model, x, taken)
        assert_normwise_close(model(x).output, expected.output, 1e-12)

    def test_under_torch_func(self, taken: list[int]) -> None:
        model, x = NeuralStack(3, 2).double(), torch.rand(4, 5, 3).double()
        expected = model(x).output
        actual = torch.func.vmap(lambda x: model(x[None]).output[0])(x)
        assert len(taken) == 5
        assert_normwise_close(actual, expected, 1e-12)

    def test_with_a_subclass_that_steps_in_another_way(self, taken: list[int]) -> None:
        class Other(NeuralStack):
            def step(self, x: Tensor, state: Any) -> Any:
                return super().step(x + 1, state)

        torch.manual_seed(0)
        model = Other(3, 2)
        x = torch.rand(2, 5, 3)
        self.assert_stepped(model, x, taken)
        assert torch.equal(model(x).input, x + 1)
