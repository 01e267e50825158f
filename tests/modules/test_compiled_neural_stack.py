"""All steps of a neural stack as one compiled operation, beside its steps one by one."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from fairseq_stack.modules import neural_stack
from fairseq_stack.modules.neural_stack import CELLS, MEMORIES, BufferedNeuralStack, Controller, NeuralStack, Step
from tests.helpers import assert_normwise_close
from tests.modules.lstms import counted

TOLERANCES = {torch.float64: 1e-12, torch.float32: 2e-5}
EXTREMES = (0.0, 0.0, 0.0, 1.0, -1000.0, 1000.0)
"""Biases of strengths: the sigmoids of the last two are 0 and 1."""


@pytest.fixture(autouse=True)
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The steps that are taken one by one."""
    return counted(Controller, "_control", monkeypatch)


def fields(found: Step | tuple[Tensor, Step]) -> dict[str, Tensor]:
    """All that a network computes."""
    outputs = {} if isinstance(found, Step) else {"outputs": found[0]}
    every = found if isinstance(found, Step) else found[1]
    return outputs | {name: x for name, x in every._asdict().items() if x is not None}


def gradients(
    model: Controller, found: dict[str, Tensor], x: Tensor, used: Sequence[bool]
) -> Iterator[tuple[str, Tensor]]:
    """Of a loss that depends on some of the fields, each of its numbers with another weight."""
    loss = x.new_zeros(())
    for (_, values), is_used in zip(sorted(found.items()), used, strict=False):
        weights = torch.randn(values.shape, generator=torch.Generator().manual_seed(7), dtype=torch.float32)
        loss = loss + is_used * (values * weights.to(values.dtype)).sum()
    parameters = {"x": x, **dict(model.named_parameters())}
    yield from zip(
        parameters,
        torch.autograd.grad(loss, [*parameters.values()], allow_unused=True, materialize_grads=True),
        strict=True,
    )


class Network(NamedTuple):
    """A network and the sizes of its input."""

    kind: type[NeuralStack] | type[BufferedNeuralStack]
    controller: str
    memory: str
    pushed: str
    sizes: tuple[int, int, int]
    batch_size: int
    length: int
    more: int
    dtype: torch.dtype

    def build(self, biases: Sequence[float], seed: int) -> tuple[Controller, Tensor]:
        """The network and its input."""
        torch.manual_seed(seed)
        size, vector_size, hidden_size = self.sizes
        model = self.kind(
            size,
            size if self.pushed == "input" else vector_size,
            controller=self.controller,
            hidden_size=hidden_size,
            memory=self.memory,
            pushed=self.pushed,
            output_size=2,
        )
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.3)
            model.out.bias[: model.num_strengths] += torch.tensor(biases[: model.num_strengths])
        x = torch.rand(self.batch_size, self.length, size, dtype=torch.float64).to(self.dtype)
        return model.to(self.dtype), x.requires_grad_()


networks = st.builds(
    Network,
    kind=st.sampled_from((NeuralStack, BufferedNeuralStack)),
    controller=st.sampled_from([*CELLS]),
    memory=st.sampled_from([*MEMORIES]),
    pushed=st.sampled_from(neural_stack.PUSHED),
    sizes=st.tuples(st.integers(1, 5), st.integers(1, 6), st.sampled_from((1, 4, 10))),
    batch_size=st.sampled_from((0, 1, 2, 3)),
    length=st.sampled_from((1, 2, 3, 7, 12, 63)),
    more=st.sampled_from((0, 0, 1, 9)),
    dtype=st.sampled_from([*TOLERANCES]),
)


def assert_agree(network: Network, biases: Sequence[float], used: Sequence[bool], seed: int, taken: list[int]) -> None:
    """The loop in the dtype of the network, and the steps in float64."""
    model, x = network.build(biases, seed)
    exact, wide = copy.deepcopy(model).double(), x.detach().double().requires_grad_()
    steps, tolerance = network.length + network.more, TOLERANCES[network.dtype]
    taken.clear()
    found = fields(model(x, steps=steps))
    assert not taken
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neural_stack, "neural_stack_is_compiled", lambda *_: False)
        expected = fields(exact(wide, steps=steps))
    assert len(taken) == steps
    assert found.keys() == expected.keys()
    for name, wanted in expected.items():
        assert found[name].dtype == network.dtype
        assert_normwise_close(found[name], wanted, tolerance, name)
    of_expected = dict(gradients(exact, expected, wide, used))
    for name, actual in gradients(model, found, x, used):
        assert_normwise_close(actual, of_expected[name], tolerance, name)


def with_networks(count: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Runs a test with so many networks."""
    biases = st.tuples(*[st.sampled_from(EXTREMES)] * 4)
    used = st.tuples(*[st.booleans()] * 9)
    given_networks = given(network=networks, biases=biases, used=used, seed=st.integers(0, 2**31))
    checks = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    limited = settings(max_examples=count, suppress_health_check=checks)
    return lambda test: limited(given_networks(test))


@with_networks(60)
def test_values_and_gradients_are_those_of_the_steps(
    taken: list[int], network: Network, biases: Sequence[float], used: Sequence[bool], seed: int
) -> None:
    assert_agree(network, biases, used, seed, taken)


@pytest.mark.hostile
@with_networks(1500)
def test_many_more_networks(
    taken: list[int], network: Network, biases: Sequence[float], used: Sequence[bool], seed: int
) -> None:
    assert_agree(network, biases, used, seed, taken)


@pytest.mark.parametrize("kind", [NeuralStack, BufferedNeuralStack])
@pytest.mark.parametrize("memory", ["stack", "queue"])
def test_strengths_of_exactly_0_and_1_have_finite_gradients(
    kind: type[NeuralStack] | type[BufferedNeuralStack], memory: str
) -> None:
    for number in range(16):
        biases = [1000.0 if number >> i & 1 else -1000.0 for i in range(4)]
        model, x = Network(kind, "lstm", memory, "vector", (3, 2, 4), 2, 5, 3, torch.float32).build(biases, number)
        found = fields(model(x, steps=8))
        strengths = torch.stack([found[name] for name in ("pop", "push")])
        assert ((strengths == 0) | (strengths == 1)).all()
        assert all(of.isfinite().all() for _, of in gradients(model, found, x, [True] * 9))


class TestStepsOneByOne:
    """Where the compiled operation cannot run, the steps are taken as ever."""

    def assert_stepped(self, model: NeuralStack, x: Tensor, taken: list[int]) -> None:
        steps = model(x)
        assert len(taken) == x.size(1)
        assert steps.output.shape == (*x.shape[:2], model.output_size)

    def test_in_half_precision(self, taken: list[int]) -> None:
        self.assert_stepped(NeuralStack(3, 2).bfloat16(), torch.rand(2, 5, 3).bfloat16(), taken)

    def test_with_weights_that_do_not_fit_the_caches(self, taken: list[int]) -> None:
        self.assert_stepped(NeuralStack(3, 2, controller="lstm", hidden_size=128), torch.rand(2, 5, 3), taken)

    def test_under_autocast(self, taken: list[int]) -> None:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            self.assert_stepped(NeuralStack(3, 2, controller="lstm"), torch.rand(2, 5, 3), taken)

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
        found = torch.func.vmap(lambda x: model(x[None]).output[0])(x)
        assert len(taken) == 5
        assert_normwise_close(found, expected, 1e-12)

    def test_with_a_subclass_that_steps_in_another_way(self, taken: list[int]) -> None:
        class Other(NeuralStack):
            def step(self, x: Tensor, state: Any) -> Any:
                return super().step(x + 1, state)

        torch.manual_seed(0)
        model = Other(3, 2)
        x = torch.rand(2, 5, 3)
        self.assert_stepped(model, x, taken)
        assert torch.equal(model(x).input, x + 1)
