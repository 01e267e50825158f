"""The compiled loop computes what the equations say."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.helpers import assert_normwise_close, threads
from tests.ops.controllers.inputs import SETUPS, SIZE, gradients_of, names, outputs_of, random_arguments

EACH = pytest.mark.parametrize("name", SETUPS)


def assert_agree(name: str, arguments: list[Tensor], tolerance: float, steps: int | None = None) -> None:
    """Values and gradients of the compiled backend, in the dtype of the arguments, and of the equations in float64."""
    setup = SETUPS[name]
    wide = [x.detach().double().requires_grad_() for x in arguments]
    expected = outputs_of(setup, wide, steps, backend="reference")
    found = outputs_of(setup, arguments, steps)
    for actual, wanted, what in zip(found, expected, ("rows", "remembered"), strict=True):
        assert actual.dtype == arguments[0].dtype
        assert_normwise_close(actual, wanted, tolerance, what)
    of_found, of_expected = gradients_of(found, arguments), gradients_of(expected, wide)
    for argument, actual, wanted in zip(names(setup), of_found, of_expected, strict=True):
        assert_normwise_close(actual, wanted, tolerance, argument)


@EACH
@pytest.mark.parametrize(("batch_size", "length", "steps"), [(3, 6, 6), (1, 1, 1), (2, 1, 4), (2, 4, 7), (0, 3, 3)])
@pytest.mark.usefixtures("instruction_set")
def test_values_and_gradients_are_those_of_the_equations(name: str, batch_size: int, length: int, steps: int) -> None:
    assert_agree(name, random_arguments(SETUPS[name], batch_size, length), 1e-11, steps)


@EACH
@pytest.mark.usefixtures("instruction_set")
def test_float32(name: str) -> None:
    assert_agree(name, random_arguments(SETUPS[name], dtype=torch.float32), 1e-6, 8)


@pytest.mark.parametrize("hidden_size", [1, 8, 16, 37])
@pytest.mark.parametrize("name", ["rnn", "lstm", "gru"])
@pytest.mark.usefixtures("instruction_set")
def test_sizes_that_fill_no_vector_and_several(name: str, hidden_size: int) -> None:
    assert_agree(name, random_arguments(SETUPS[name], 2, 4, hidden_size), 1e-11)


@EACH
@pytest.mark.usefixtures("compiled")
def test_arguments_that_are_not_contiguous(name: str) -> None:
    setup, arguments = SETUPS[name], random_arguments(SETUPS[name])
    strided = [torch.stack([x, x + 1], -1)[..., 0] for x in arguments]
    found, expected = outputs_of(setup, strided), outputs_of(setup, arguments)
    assert all(map(torch.equal, found, expected))
    assert all(map(torch.equal, gradients_of(found, arguments), gradients_of(expected, arguments)))


@EACH
@pytest.mark.usefixtures("instruction_set")
def test_a_sequence_does_not_depend_on_the_others_nor_on_later_steps(name: str) -> None:
    """To the bit, whatever the batch is, and with any number of threads."""
    setup, arguments = SETUPS[name], random_arguments(SETUPS[name], 7, 4, dtype=torch.float32)
    outputs = outputs_of(setup, arguments)
    of_x = gradients_of(outputs, arguments)[0]
    x, *others = arguments
    for some in (slice(0, 1), slice(2, 5)):
        found = outputs_of(setup, [x[some], *others])
        assert all(map(torch.equal, found, (y[some] for y in outputs)))
    longer = outputs_of(setup, arguments, 9)[0]
    assert torch.equal(longer[:, :4], outputs[0])
    with threads(2):
        again = outputs_of(setup, arguments)
        assert all(map(torch.equal, again, outputs))
        assert torch.equal(gradients_of(again, arguments)[0], of_x)


@pytest.mark.parametrize("name", ["linear", "lstm", "buffer"])
@pytest.mark.usefixtures("compiled")
def test_a_thousand_steps(name: str) -> None:
    arguments = random_arguments(SETUPS[name], 1, 500)
    outputs = outputs_of(SETUPS[name], arguments, 1000)
    assert all(x.isfinite().all() for x in (*outputs, *gradients_of(outputs, arguments)))


@EACH
@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.usefixtures("instruction_set")
def test_numbers_that_are_not_finite_stay_out_of_earlier_steps_and_other_sequences(name: str, value: float) -> None:
    setup, arguments = SETUPS[name], random_arguments(SETUPS[name])
    expected = outputs_of(setup, arguments)[0]
    with torch.no_grad():
        arguments[0][1, 3, 0] = value
    found, wanted = (outputs_of(setup, arguments, backend=backend) for backend in ("native", "reference"))
    untouched = torch.ones(3, 6, dtype=torch.bool)
    untouched[1, 3:] = False
    if setup.is_buffered:  # An item is read as soon as the position is beyond the item before it.
        untouched[1, 1:] = False
    assert torch.equal(found[0][untouched], expected[untouched])
    for actual, right in zip(found, wanted, strict=True):
        assert torch.equal(actual.isnan(), right.isnan())
        assert_normwise_close(actual.nan_to_num(), right.nan_to_num(), 1e-11)
    (of_x,) = torch.autograd.grad(found[0][untouched].square().sum(), arguments[:1])
    assert of_x[[0, 2]].isfinite().all()


@pytest.mark.usefixtures("compiled")
def test_gradients_reach_every_input_that_is_read() -> None:
    arguments = random_arguments(SETUPS["linear"])
    of_x = gradients_of(outputs_of(SETUPS["linear"], arguments), arguments)[0]
    assert of_x.shape == (3, 6, SIZE) and of_x.all()
