"""The compiled kernels: loading, buffers, threads, and what PyTorch demands of an operator."""

from __future__ import annotations

import ctypes
import logging
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from fairseq_stack.ops import _native, nondeterministic_stack, release_buffers
from fairseq_stack.ops._native import availability, buffers
from fairseq_stack.ops._native.structures import Call
from fairseq_stack.ops.nondeterministic import native
from fairseq_stack.ops.nondeterministic._log_weights import join_transitions
from fairseq_stack.ops.superposition import native as superposition_native
from tests.helpers import threads
from tests.ops.nondeterministic.inputs import random_inputs
from tests.ops.stacks import STACKS
from tests.ops.test_networks import NETWORKS


@pytest.fixture
def fresh() -> Iterator[None]:
    """Forget what was loaded, before and after the test."""
    availability.cache_clear()
    yield
    availability.cache_clear()


@pytest.fixture
def compiled() -> _native.Library:
    loaded, reason = availability()
    if loaded is None:
        pytest.skip(reason)
    return loaded


@pytest.mark.usefixtures("fresh")
def test_switched_off(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("FAIRSEQ_STACK_NATIVE", "0")
    inputs = random_inputs(1, 3, 1, 2)
    with caplog.at_level(logging.INFO):
        for _ in range(2):
            nondeterministic_stack(*inputs)
    assert [record.message for record in caplog.records] == [
        "stacks run in PyTorch: the compiled kernels are switched off (FAIRSEQ_STACK_NATIVE=0)"
    ]


@pytest.mark.usefixtures("fresh")
def test_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("FAIRSEQ_STACK_KERNELS", raising=False)
    monkeypatch.setattr(_native, "LIBRARY", tmp_path / "_kernels.so")
    assert "missing; install the package again with a C compiler" in availability().reason


@pytest.mark.usefixtures("fresh")
def test_broken_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "_kernels.so"
    broken.write_text("no library")
    monkeypatch.setenv("FAIRSEQ_STACK_KERNELS", str(broken))
    loaded = availability()
    assert loaded.library is None
    assert f"{broken} cannot be used" in loaded.reason


@pytest.mark.usefixtures("fresh", "compiled")
def test_of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "INTERFACE", -1)
    availability.cache_clear()
    assert "is of another version of the package" in availability().reason


@pytest.mark.usefixtures("fresh")
def test_instruction_set_from_the_environment(monkeypatch: pytest.MonkeyPatch, compiled: _native.Library) -> None:
    for name in compiled.instruction_sets:
        monkeypatch.setenv("FAIRSEQ_STACK_INSTRUCTION_SET", name)
        availability.cache_clear()
        assert availability().reason == f"compiled kernels, {name}"
    monkeypatch.setenv("FAIRSEQ_STACK_INSTRUCTION_SET", "avx1024")
    availability.cache_clear()
    with pytest.raises(ValueError, match="FAIRSEQ_STACK_INSTRUCTION_SET: expected one that this machine has"):
        availability()


def test_arrays_live_as_long_as_the_call_that_points_to_them() -> None:
    class OneField(Call):
        _fields_ = (("values", ctypes.c_void_p),)

    call, values = OneField(), torch.ones(3)
    call.hold(values=values)
    address, kept = values.data_ptr(), weakref.ref(values)
    del values  # as graphs of torch.compile do with what is not used later
    assert call.values == address and kept() is not None


def test_buffers_are_used_again() -> None:
    release_buffers()
    first = buffers.take(10_000)
    address = first.data_ptr()
    assert first.shape == (10_000,)
    view = first[5:]
    del first
    assert buffers.take(10_000).data_ptr() != address
    del view
    again = buffers.take(10_000)
    assert again.data_ptr() == address
    del again
    assert buffers.take(13_000).data_ptr() == address, "lengths vary, and memory must not grow with each new one"


def test_released_buffers_are_gone() -> None:
    del_me = buffers.take(10_000)
    del del_me
    release_buffers()
    assert not any(buffers._free.values())


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_operators_are_what_pytorch_demands(dtype: torch.dtype) -> None:
    push, replace, _ = logits = [torch.randn(3, 5, 2, 2, *target, dtype=dtype) for target in ((2, 2), (2, 2), (2,))]
    push[1] *= 100
    replace[2, :, :, 1] = -torch.inf
    inputs = [x.requires_grad_() for x in (join_transitions(*logits), torch.randn(3, 6, 2, dtype=dtype))]
    torch.library.opcheck(native._stack, (*inputs, 2))
    readings, *saved = (x.detach() for x in native._stack(*inputs, 2))
    arguments = [*(x.detach() for x in inputs), *saved, 2]
    for grad_weights in (None, torch.randn_like(saved[0])):
        torch.library.opcheck(native._stack_backward, (torch.randn_like(readings), grad_weights, *arguments))


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_operators_of_superposition_are_what_pytorch_demands(dtype: torch.dtype) -> None:
    for length, limit in ((0, 0), (9, 9), (9, 2)):
        actions, values = (x.to(dtype).requires_grad_() for x in STACKS["superposition"].draw(2, length, 5))
        torch.library.opcheck(superposition_native._stack, (actions, values, limit))
        arguments = torch.randn_like(values), actions.detach(), values.detach(), limit
        torch.library.opcheck(superposition_native._stack_backward, arguments)


def test_threads_are_those_of_pytorch(compiled: _native.Library) -> None:
    if sys.platform != "linux" or not torch.backends.openmp.is_available():
        pytest.skip("this PyTorch has no threads that others can use")
    assert compiled.shares_threads


def test_team_is_given_what_is_worth_it(compiled: _native.Library) -> None:
    asked: list[int] = []

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
    def team(work: int, argument: int, count: int, flags: int) -> None:
        asked.append(count)
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(work)(argument)

    inputs = random_inputs(5, 20, dtype=torch.float32)
    expected = nondeterministic_stack(*inputs)
    compiled.use_team(ctypes.cast(team, ctypes.c_void_p).value)
    try:
        with threads(3):
            assert torch.equal(nondeterministic_stack(*inputs), expected)
        with threads(1):
            nondeterministic_stack(*inputs)
    finally:
        compiled.use_team(_native.torch_team())
    assert asked == [3]


@pytest.mark.usefixtures("compiled")
def test_float32_is_used_where_it_is_precise_enough() -> None:
    push, replace, pop = logits = [torch.randn(4, 30, 2, 3, *target) for target in ((2, 3), (2, 3), (2,))]
    push[1] *= 5
    replace[2] *= 30
    pop[3, 20, 1, 2] = -torch.inf
    joined = join_transitions(*logits)
    *_, wide, _ = native._stack(joined, torch.randn(4, 31, 2), 2)
    assert wide.tolist() == [False, False, True, True]
    *_, wide, _ = native._stack(joined.double(), torch.randn(4, 31, 2).double(), 2)
    assert wide.all()


def differentiated(op: str) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Random inputs of an operator, and what it makes of them."""
    if op in ("nondeterministic_stack", "window"):
        stack = STACKS["nondeterministic"]
        inputs = stack.random_inputs(2, 9)
        return inputs, stack.compute(*inputs, window=3 if op == "window" else None)
    network = NETWORKS["lstm-nd" if op == "stack_lstm" else "neural-gru"]
    inputs = network.arguments()
    return inputs, network.compute(inputs)[0]


each_operator = pytest.mark.parametrize("op", ["nondeterministic_stack", "window", "stack_lstm", "neural_stack"])


@each_operator
@pytest.mark.usefixtures("compiled")
def test_what_a_pass_leaves_gets_no_cotangent(op: str) -> None:
    """Zeros for it would take as much memory again, and much of the time of a backward pass."""
    made: list[torch.dtype] = []

    class Made(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            outputs = function(*args, **(kwargs or {}))
            made.extend(x.dtype for x in tree_leaves(outputs) if isinstance(x, torch.Tensor))
            return outputs

    _, outputs = differentiated(op)
    with Made():
        outputs.sum().backward()
    assert made
    assert torch.uint8 not in made


@each_operator
@pytest.mark.usefixtures("compiled")
def test_without_a_cotangent_there_is_no_gradient(op: str) -> None:
    """As if what follows had no derivative."""

    class Constant(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> None:
            return None

    inputs, outputs = differentiated(op)
    gradients = torch.autograd.grad(Constant.apply(outputs).sum(), inputs, allow_unused=True)
    assert all(x is None for x in gradients)
