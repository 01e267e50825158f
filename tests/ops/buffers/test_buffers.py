"""The buffers against golden values, their own references, and the steps of a queue."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fairseq_stack.ops import InputBufferState, input_buffer, output_buffer
from tests.helpers import assert_agree, assert_normwise_close, each_golden_file, gradients

BACKENDS = ("reference", "pytorch")
READINGS = ("dequeue-first", "read-first")


def random_input(length: int, count: int, *, scale: float = 1.0, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    inputs = [scale * torch.rand(2, length, dtype=dtype), torch.randn(2, count, 3, dtype=dtype)]
    return [x.requires_grad_() for x in inputs]


def check_golden_gradients(golden: np.lib.npyio.NpzFile, outputs: Tensor, inputs: dict[str, Tensor]) -> None:
    has_ties = "cotangent" not in golden  # The gradient is not unique.
    cotangent = torch.ones_like(outputs) if has_ties else torch.tensor(golden["cotangent"])
    for key, gradient in zip(inputs, gradients(outputs, [*inputs.values()], cotangent), strict=True):
        if has_ties:
            assert gradient.isfinite().all(), key
        else:
            assert_normwise_close(gradient, golden[f"grad_{key}"], 1e-9, key)


@pytest.mark.parametrize("backend", BACKENDS)
@each_golden_file("neural_stacks/input_buffer_*.npz")
def test_golden_input_buffer(path: Path, backend: str) -> None:
    golden = np.load(path)
    inputs = {key: torch.tensor(golden[key]).requires_grad_() for key in ("pops", "items")}
    x = input_buffer(inputs["pops"], inputs["items"], backend=backend)
    assert_normwise_close(x, golden["x"], 1e-9)
    check_golden_gradients(golden, x, inputs)


@pytest.mark.parametrize("backend", BACKENDS)
@each_golden_file("neural_stacks/output_buffer_*.npz")
def test_golden_output_buffer(path: Path, backend: str) -> None:
    golden = np.load(path)
    inputs = {key: torch.tensor(golden[key]).requires_grad_() for key in ("push", "y")}
    length = golden["outputs"].shape[1]
    outputs = output_buffer(inputs["push"], inputs["y"], length, backend=backend)
    assert_normwise_close(outputs, golden["outputs"], 1e-9)
    read_first = output_buffer(inputs["push"], inputs["y"], length, reading="read-first", backend=backend)
    assert_normwise_close(read_first, golden["outputs_read_first"], 1e-9)
    check_golden_gradients(golden, outputs, inputs)


@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0])
@pytest.mark.parametrize(("length", "count"), [(0, 3), (1, 1), (7, 0), (7, 4), (30, 21)])
def test_input_buffer_equals_reference(length: int, count: int, scale: float) -> None:
    inputs = random_input(length, count, scale=scale)
    actual, expected = (input_buffer(*inputs, backend=backend) for backend in ("auto", "reference"))
    assert actual.shape == (2, length, 3)
    assert_agree(actual, expected, inputs, 1e-12, 1e-11)


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0])
@pytest.mark.parametrize(("steps", "length"), [(0, 3), (1, 1), (7, 0), (7, 4), (30, 21)])
def test_output_buffer_equals_reference(steps: int, length: int, scale: float, reading: str) -> None:
    push, values = inputs = random_input(steps, steps, scale=scale)
    actual, expected = (
        output_buffer(push, values, length, reading=reading, backend=backend) for backend in ("auto", "reference")
    )
    assert actual.shape == (2, length, 3)
    assert_agree(actual, expected, inputs, 1e-12, 1e-11)


def step_through(pop: Tensor, items: Tensor, rows: Tensor) -> Tensor:
    """The inputs of the steps of a buffer whose rows are reordered after the fourth."""
    state, inputs = InputBufferState.initial(items), []
    for t in range(pop.size(1)):
        x, state = state.step(pop[:, t] if t else torch.zeros_like(pop[:, t]))
        state, pop = (state.reorder(rows), pop[rows]) if t == 3 else (state, pop)
        inputs.append(x)
    return torch.stack(inputs, 1)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_steps_of_an_input_buffer(dtype: torch.dtype) -> None:
    pop, items = random_input(12, 5, dtype=dtype)
    keep, swap = torch.tensor([0, 1]), torch.tensor([1, 0])
    if dtype == torch.float64:
        assert_agree(step_through(pop, items, keep), input_buffer(pop, items), (pop, items), 1e-12, 1e-11)
    expected = input_buffer(pop, items)
    assert_normwise_close(step_through(pop, items, keep), expected, 1e-6)
    assert_normwise_close(step_through(pop, items, swap)[:, 4:], expected[swap, 4:], 1e-6)
    pop, items = pop.detach().clone(), items.detach().clone()
    pop[0, 8], items[1, 4, 2] = torch.nan, torch.nan
    stepped, whole = step_through(pop, items, keep), input_buffer(pop, items)
    assert torch.equal(stepped.isnan(), whole.isnan())
    assert stepped[0, 8:].isnan().all()


def test_a_little_beyond_an_item() -> None:
    pop, items = torch.tensor([[0.0, 1.0, 1e-8]]), torch.tensor([[[1.0], [2.0], [torch.nan]]])
    stepped = step_through(pop, items, torch.tensor([0]))
    assert torch.equal(stepped.isnan(), input_buffer(pop, items).isnan())
    assert stepped[0, 2].isnan().all()


def test_wrong_steps_of_an_input_buffer() -> None:
    state = InputBufferState.initial(torch.rand(2, 5, 3))
    with pytest.raises(ValueError, match=r"^pop: expected shape \(2\), got \(3,\)$"):
        state.step(torch.rand(3))
    with pytest.raises(ValueError, match=r"^pop: expected dtype torch.float32 or a narrower dtype like the state, "):
        state.step(torch.rand(2).double())
    with pytest.raises(ValueError, match=r"^index: expected row numbers from 0 to 1, got \[2\]$"):
        state.reorder(torch.tensor([2]))


def test_float32_accuracy() -> None:
    pop, items = random_input(1000, 1000, dtype=torch.float32)
    assert_normwise_close(input_buffer(pop, items), input_buffer(pop.double(), items.double()), 1e-6)
    outputs, expected = (output_buffer(x, y, 500) for x, y in ((pop, items), (pop.double(), items.double())))
    assert outputs.dtype == torch.float32
    assert_normwise_close(outputs, expected, 1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@settings(max_examples=40)
@given(data=st.data())
def test_extreme_strengths_are_finite(backend: str, dtype: torch.dtype, data: st.DataObject) -> None:
    strength = st.sampled_from([0.0, torch.finfo(dtype).tiny, 1e-20, 0.5, 1.0, 1e20, torch.finfo(dtype).max])
    strengths = torch.tensor(data.draw(st.lists(strength, min_size=5, max_size=5)), dtype=dtype)[None].requires_grad_()
    values = torch.full((1, 5, 2), 1e30, dtype=dtype)
    values[:, ::2] *= -1
    values.requires_grad_()
    results = [input_buffer(strengths, values, backend=backend)]
    results += [output_buffer(strengths, values, 4, reading=reading, backend=backend) for reading in READINGS]
    for result in results:
        assert result.isfinite().all()
        for gradient in gradients(result, (strengths, values), torch.ones_like(result)):
            assert gradient.isfinite().all()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(dtype: torch.dtype, backend: str) -> None:
    strengths, values = (x.detach().to(dtype) for x in random_input(9, 9))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        results = input_buffer(strengths, values, backend=backend), output_buffer(strengths, values, 4, backend=backend)
    wide = strengths.float(), values.float()
    expected = input_buffer(*wide, backend=backend), output_buffer(*wide, 4, backend=backend)
    for actual, wanted in zip(results, expected, strict=True):
        assert actual.dtype == dtype
        assert torch.equal(actual, wanted.to(dtype))


def read_outputs(push: Tensor, values: Tensor, *, backend: str) -> Tensor:
    return output_buffer(push, values, 5, reading="read-first", backend=backend)


@pytest.mark.parametrize("garbage", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("compute", "sizes", "spoilt", "place", "wrong_at"),
    [
        (input_buffer, (8, 4), 0, (0, 5), np.s_[0, 5:]),
        (input_buffer, (8, 4), 1, (0, 2, 1), np.s_[0, 3:6, 1]),  # the positions 1.5, 2 and 2.5 read it
        (read_outputs, (10, 10), 0, (0, 5), np.s_[0, 2:]),  # before it 2.5 was written
        (read_outputs, (10, 10), 1, np.s_[0, 4:6, 1], (0, 2, 1)),
    ],
)
def test_garbage_stays_out_of_what_does_not_depend_on_it(
    compute: Callable[..., Tensor],
    sizes: tuple[int, int],
    spoilt: int,
    place: Any,
    wrong_at: Any,
    backend: str,
    garbage: float,
) -> None:
    steps, length = sizes
    leaves = [torch.full((2, steps), 0.5, dtype=torch.float64), torch.randn(2, length, 3, dtype=torch.float64)]
    expected = compute(*leaves, backend=backend)
    wrong = torch.zeros_like(expected, dtype=torch.bool)
    leaves[spoilt][place] = garbage
    wrong[wrong_at] = True
    actual = compute(*[x.requires_grad_() for x in leaves], backend=backend)
    assert actual[wrong].isnan().all()
    assert torch.equal(actual[~wrong], expected[~wrong])
    for gradient in torch.autograd.grad(actual[~wrong].sum(), leaves):
        assert gradient.isfinite().all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_first_pop_is_not_used(backend: str) -> None:
    pop, items = random_input(6, 4)
    expected = input_buffer(pop, items, backend=backend)
    changed = torch.cat([torch.full_like(pop[:, :1], torch.nan), pop[:, 1:]], 1)
    assert torch.equal(input_buffer(changed, items, backend=backend), expected)
    (gradient,) = torch.autograd.grad(expected.sum(), pop)
    assert not gradient[:, 0].any()


def test_wrong_arguments() -> None:
    strengths, values = random_input(5, 5)
    for length in (-1, 2.0, None):
        with pytest.raises(ValueError, match=r"^length: expected an integer from 0 on, got "):
            output_buffer(strengths, values, length)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^reading: expected 'dequeue-first' or 'read-first', got 'first'$"):
        output_buffer(strengths, values, 3, reading="first")
    with pytest.raises(ValueError, match=r"^values: expected shape \(B, T, m\) with B = 2, T = 5, got \(2, 4, 3\)$"):
        output_buffer(strengths, values[:, 1:], 3)
    with pytest.raises(ValueError, match=r"^items: expected shape \(B, n, m\) with B = 2, got \(1, 5, 3\)$"):
        input_buffer(strengths, values[1:])
    with pytest.raises(ValueError, match=r"^input_buffer: backend must be one of 'auto', 'pytorch', 'reference', got "):
        input_buffer(strengths, values, backend="native")
    with pytest.raises(ValueError, match=r"^output_buffer: expected tensors with data, got device meta$"):
        output_buffer(strengths.to("meta"), values.to("meta"), 3)
