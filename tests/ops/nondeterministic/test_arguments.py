"""The checks of the nondeterministic stack's arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import NondeterministicStackState, nondeterministic_stack

Arguments = dict[str, Tensor]

# B = 2, n = 5, Q = 2, S = 3, m = 4
SHAPES: dict[str, dict[str, tuple[int, ...]]] = {
    "nondeterministic_stack": {
        "push": (2, 5, 2, 3, 2, 3),
        "replace": (2, 5, 2, 3, 2, 3),
        "pop": (2, 5, 2, 3, 2),
        "values": (2, 5, 4),
        "bottom": (2, 4),
    },
    "step": {"push": (2, 2, 3, 2, 3), "replace": (2, 2, 3, 2, 3), "pop": (2, 2, 3, 2), "value": (2, 4)},
}
EACH_AXIS = [
    (op, name, axis) for op, shapes in SHAPES.items() for name, shape in shapes.items() for axis in range(len(shape))
]
EACH_ARGUMENT = [(op, name) for op, shapes in SHAPES.items() for name in shapes]


def step(**arguments: Tensor) -> object:
    state = NondeterministicStackState.initial(torch.zeros(4), batch_size=2, num_states=2, num_symbols=3)
    return state.step(**arguments)


CALLS: dict[str, Callable[..., Any]] = {"nondeterministic_stack": nondeterministic_stack, "step": step}


def good_arguments(op: str) -> Arguments:
    return {name: torch.rand(shape) for name, shape in SHAPES[op].items()}


@pytest.mark.parametrize("op", SHAPES)
def test_good_arguments_pass(op: str) -> None:
    found = CALLS[op](**good_arguments(op))
    if op == "step":
        found, state = found
        assert isinstance(state, NondeterministicStackState)
    assert found.shape == ((2, 2, 3, 4) if op == "step" else (2, 5, 2, 3, 4))
    assert found.isfinite().all()


@pytest.mark.parametrize(("op", "name", "axis"), EACH_AXIS)
def test_wrong_size_of_any_axis(op: str, name: str, axis: int) -> None:
    arguments = good_arguments(op)
    arguments[name] = torch.cat([arguments[name]] * 2, dim=axis)
    # The first argument of the op sets the sizes, so that another one, or another axis of it, is found wrong.
    with pytest.raises(ValueError, match=r"^\w+: expected shape \(.*, got \(") as error:
        CALLS[op](**arguments)
    if name != "push" and not (name == "values" and axis == 2):
        assert str(error.value).startswith(f"{name}: ")


@pytest.mark.parametrize(("op", "name"), EACH_ARGUMENT)
def test_wrong_number_of_axes(op: str, name: str) -> None:
    arguments = good_arguments(op)
    arguments[name] = arguments[name][None]
    with pytest.raises(ValueError, match=rf"^{name}: expected shape "):
        CALLS[op](**arguments)


@pytest.mark.parametrize(("op", "name"), EACH_ARGUMENT)
def test_wrong_type(op: str, name: str) -> None:
    for wrong, message in (
        (lambda x: x.long(), "expected a floating-point dtype, got torch.int64"),
        (lambda x: x.tolist(), "expected a tensor of shape .*, got list"),
    ):
        arguments = good_arguments(op)
        arguments[name] = wrong(arguments[name])
        with pytest.raises(ValueError, match=rf"^{name}: {message}$"):
            CALLS[op](**arguments)


@pytest.mark.parametrize(("op", "name"), EACH_ARGUMENT)
@pytest.mark.parametrize("to", [torch.float64, "meta"], ids=["dtype", "device"])
def test_arguments_that_differ(op: str, name: str, to: torch.dtype | str) -> None:
    arguments = good_arguments(op)
    arguments[name] = arguments[name].to(to)
    blamed = "replace" if name == "push" else name
    with pytest.raises(ValueError, match=rf"^{blamed}: expected (dtype|device) \S+ like push, got "):
        CALLS[op](**arguments)


@pytest.mark.parametrize("to", [torch.float64, "meta"], ids=["dtype", "device"])
def test_steps_that_do_not_fit_the_state(to: torch.dtype | str) -> None:
    arguments = {name: x.to(to) for name, x in good_arguments("step").items()}
    with pytest.raises(ValueError, match=r"^push: expected (dtype|device) .* like the state, got "):
        step(**arguments)


def test_bottom_of_the_state() -> None:
    for bottom in (torch.zeros(3, 4), torch.zeros(1, 2, 4), torch.zeros(4).long(), torch.tensor(0.0)):
        with pytest.raises(ValueError, match=r"^bottom: expected "):
            NondeterministicStackState.initial(bottom, batch_size=2, num_states=2, num_symbols=3)


@pytest.mark.parametrize(
    "index",
    [torch.tensor([0.0]), torch.tensor([0], dtype=torch.int32), torch.tensor([[0]]), [0]],
    ids=["float", "int32", "two-axes", "list"],
)
def test_index_of_reorder(index: Tensor) -> None:
    state = NondeterministicStackState.initial(torch.zeros(4), batch_size=2, num_states=2, num_symbols=3)
    with pytest.raises(ValueError, match=r"^index: expected a one-dimensional LongTensor, got "):
        state.reorder(index)
