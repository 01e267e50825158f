"""The compiled loops of LSTMs with stacks and of neural stacks compute what the equations say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import jvp

from tests.helpers import assert_normwise_close, assert_refuses_forward_mode, threads
from tests.ops.controllers import inputs as controllers
from tests.ops.recurrent import inputs as recurrent

SIZES = [(3, 6), (1, 1), (5, 2), (0, 3)]


@dataclass(frozen=True)
class Network:
    """A network whose steps one compiled loop computes.

    Attributes:
        op: the name of the public function.
        names: of the arguments; the first has an axis of steps.
        arguments: random ones, with gradients.
        compute: all outputs, whose first two axes are sequences and steps.
        float32: the tolerance there.
        is_buffered: whether an item is read as soon as the position is beyond the item before it.
    """

    op: str
    names: tuple[str, ...]
    arguments: Callable[..., list[Tensor]]
    compute: Callable[..., tuple[Tensor, ...]]
    float32: float
    is_buffered: bool = False


def _lstm(stacks: Sequence[Any]) -> Network:
    def compute(arguments: Sequence[Tensor], backend: str = "native") -> tuple[Tensor, ...]:
        return (recurrent.outputs_of(stacks, arguments, backend=backend),)

    return Network("stack_lstm", recurrent.NAMES, partial(recurrent.random_arguments, stacks), compute, 2e-5)


def _neural_stack(setup: Any) -> Network:
    def compute(arguments: Sequence[Tensor], backend: str = "native") -> tuple[Tensor, ...]:
        return controllers.outputs_of(setup, arguments, arguments[0].size(1) + 2, backend=backend)

    draw = partial(controllers.random_arguments, setup)
    return Network("neural_stack", controllers.names(setup), draw, compute, 4e-7, setup.is_buffered)


NETWORKS = {f"lstm-{name}": _lstm(stacks) for name, stacks in recurrent.STACKS.items()}
NETWORKS |= {f"neural-{name}": _neural_stack(setup) for name, setup in controllers.SETUPS.items()}
EACH = pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
LARGEST = pytest.mark.parametrize("network", [NETWORKS["lstm-four"], NETWORKS["neural-gru"]], ids=["lstm", "neural"])
CELLS = ("lstm-four", "neural-rnn", "neural-lstm", "neural-gru")


def squares(outputs: Sequence[Tensor]) -> Tensor:
    return torch.stack([x.square().sum() for x in outputs]).sum()


def assert_agree(network: Network, arguments: list[Tensor], tolerance: float) -> None:
    """Values and gradients of the compiled backend, in the dtype of the arguments, and of the equations in float64."""
    wide = [x.detach().double().requires_grad_() for x in arguments]
    outputs, expected = network.compute(arguments), network.compute(wide, "reference")
    for actual, wanted in zip(outputs, expected, strict=True):
        assert actual.dtype == arguments[0].dtype
        assert_normwise_close(actual, wanted, tolerance)
    pairs = zip(controllers.gradients_of(outputs, arguments), controllers.gradients_of(expected, wide), strict=True)
    for name, (actual, wanted) in zip(network.names, pairs, strict=True):
        assert_normwise_close(actual, wanted, tolerance, name)


@EACH
@pytest.mark.usefixtures("instruction_set")
def test_values_and_gradients_are_those_of_the_equations(network: Network) -> None:
    for batch_size, length in SIZES:
        assert_agree(network, network.arguments(batch_size, length), 1e-10)
    assert_agree(network, network.arguments(dtype=torch.float32), network.float32)


@pytest.mark.parametrize("network", [NETWORKS[name] for name in CELLS], ids=CELLS)
@pytest.mark.usefixtures("instruction_set")
def test_sizes_that_fill_no_vector_and_several_and_long_sequences(network: Network) -> None:
    for hidden_size in (1, 3, 8, 16, 37):
        assert_agree(network, network.arguments(3, 5, hidden_size), 1e-10)
    if network.op == "stack_lstm":
        assert_agree(network, network.arguments(2, 0), 1e-10)
        assert_agree(network, network.arguments(2, 63), 1e-9)


@EACH
@pytest.mark.usefixtures("compiled")
def test_arguments_that_are_not_contiguous(network: Network) -> None:
    arguments = network.arguments()
    strided = [torch.stack([x, x + 1], -1)[..., 0] for x in arguments]
    outputs, expected = network.compute(strided), network.compute(arguments)
    assert all(map(torch.equal, outputs, expected))
    assert all(
        map(torch.equal, controllers.gradients_of(outputs, arguments), controllers.gradients_of(expected, arguments))
    )


@LARGEST
@pytest.mark.usefixtures("compiled")
def test_gradients_of_one_output_alone(network: Network) -> None:
    arguments = network.arguments()
    for number in range(len(network.compute(arguments))):
        outputs = [network.compute(arguments, backend)[number] for backend in ("native", "reference")]
        pairs = zip(*(controllers.gradients_of((x,), arguments) for x in outputs), strict=True)
        for name, (actual, wanted) in zip(network.names, pairs, strict=True):
            assert_normwise_close(actual, wanted, 1e-10, name)


@EACH
@pytest.mark.usefixtures("instruction_set")
def test_a_sequence_does_not_depend_on_the_others(network: Network) -> None:
    """To the bit, whatever the batch is, and with any number of threads."""
    arguments = network.arguments(19, 4, dtype=torch.float32)
    outputs = network.compute(arguments)
    (of_first,) = torch.autograd.grad(squares(outputs), arguments[:1])
    first, *others = arguments
    for some in (slice(0, 1), slice(2, 5), slice(1, 19)):
        part = first[some].detach().requires_grad_()
        alone = network.compute([part, *others])
        assert all(map(torch.equal, alone, (x[some] for x in outputs)))
        assert torch.equal(torch.autograd.grad(squares(alone), part)[0], of_first[some])
    with threads(2):
        again = network.compute(arguments)
        assert all(map(torch.equal, again, outputs))
        assert torch.equal(torch.autograd.grad(squares(again), arguments[:1])[0], of_first)


@EACH
@pytest.mark.usefixtures("instruction_set")
def test_numbers_that_are_not_finite_stay_out_of_earlier_steps_and_other_sequences(network: Network) -> None:
    for value in (torch.nan, torch.inf, -torch.inf):
        arguments = network.arguments()
        clean = network.compute(arguments)[0]
        with torch.no_grad():
            arguments[0][1, 3, 0] = value
        outputs, expected = (network.compute(arguments, backend) for backend in ("native", "reference"))
        untouched = torch.ones(clean.shape[:2], dtype=torch.bool)
        untouched[1, 1 if network.is_buffered else 3 :] = False
        assert torch.equal(outputs[0][untouched], clean[untouched])
        for actual, wanted in zip(outputs, expected, strict=True):
            assert torch.equal(actual.isnan(), wanted.isnan())
            assert_normwise_close(actual.nan_to_num(), wanted.nan_to_num(), 1e-10)
        (of_first,) = torch.autograd.grad(outputs[0][untouched].square().sum(), arguments[:1])
        assert of_first[[0, 2]].isfinite().all()


@pytest.mark.parametrize(
    "name", ["lstm-strat", "neural-lstm", "neural-gru", "neural-linear", "neural-pushed-from-buffer"]
)
@pytest.mark.usefixtures("instruction_set")
def test_strengths_of_exactly_0_and_1(name: str) -> None:
    """Where the sigmoids of strengths have biases of -1000 and 1000, in all combinations."""
    network = NETWORKS[name]
    for extremes in product((-1000.0, 1000.0), repeat=4 if network.is_buffered else 2):
        arguments = network.arguments()
        with torch.no_grad():
            arguments[network.names.index("bias")][: len(extremes)] = torch.tensor(extremes, dtype=torch.float64)
        assert_agree(network, arguments, 1e-10)


@LARGEST
@pytest.mark.usefixtures("compiled")
def test_only_the_reference_has_second_and_forward_mode_derivatives(network: Network) -> None:
    arguments = network.arguments(1, 3)

    def first_derivative(backend: str) -> Tensor:
        loss = controllers.weighted_sum(network.compute(arguments, backend))
        return torch.autograd.grad(loss, arguments[:1], create_graph=True)[0]

    assert torch.autograd.grad(first_derivative("reference").square().sum(), arguments[1])[0].isfinite().all()
    with pytest.raises(RuntimeError, match=f"{network.op}: only backend='reference' has second derivatives"):
        torch.autograd.grad(first_derivative("native").square().sum(), arguments[1])
    constant = [x.detach() for x in arguments]
    for i in range(len(constant)):

        def outputs(x: Tensor, backend: str, i: int = i) -> Tensor:
            return network.compute([*constant[:i], x, *constant[i + 1 :]], backend)[0]

        assert jvp(partial(outputs, backend="reference"), (constant[i],), (constant[i],))[1].abs().max() > 1e-9
        for backend in ("auto", "native"):
            assert_refuses_forward_mode(partial(outputs, backend=backend), constant[i], network.op)
