"""Every finite log weight is exact, however far the log weights of a step are apart.

The inputs are made so that runs that were far behind are the only ones left in the end.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fairseq_stack.ops import nondeterministic_stack
from fairseq_stack.ops.nondeterministic import native
from fairseq_stack.ops.nondeterministic._log_weights import join_transitions
from fairseq_stack.ops.nondeterministic._tracked_columns import TrackedColumns
from tests.helpers import assert_agree, assert_normwise_close, hostile
from tests.ops.nondeterministic.adversarial import KINDS, adversarial
from tests.ops.nondeterministic.inputs import assert_equal_results, initial_state, random_inputs, step_through


@pytest.mark.parametrize("cost", [30.0, hostile(120.0), 200.0, hostile(500.0), hostile(700.0), hostile(1400.0), 1e4])
def test_values_and_gradients(cost: float) -> None:
    for kind in KINDS:
        assert_equal_results(adversarial(kind, cost, 13), rounding=1e-9)


@pytest.mark.parametrize(
    ("length", "num_states", "num_symbols"),
    [(2, 1, 1), (1, 2, 1), hostile(24, 2, 2), hostile(60, 2, 2), hostile(60, 3, 3)],
)
def test_lengths_and_sizes(length: int, num_states: int, num_symbols: int) -> None:
    for kind in KINDS:
        inputs = adversarial(kind, 700.0, length, num_states, num_symbols)
        assert_equal_results(inputs, "auto", 1e-9, rounding=1e-9)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("kind", KINDS)
def test_backends_agree_on_long_sequences(kind: str) -> None:
    """The reference would take a quarter of a minute for each."""
    inputs = adversarial(kind, 700.0, 40, 2, 2)
    readings, expected = (nondeterministic_stack(*inputs, backend=backend) for backend in ("native", "pytorch"))
    assert_agree(readings, expected, inputs, 1e-9, rounding=1e-9)


@pytest.mark.parametrize("cost", [25.0, 55.0, 700.0])
def test_float32(cost: float, fast_backend: str) -> None:
    """The kernels take float64, and logarithms, where float32 is not enough."""
    for kind in KINDS:
        inputs = adversarial(kind, cost, 13, dtype=torch.float32)
        wide = [x.detach().double().requires_grad_() for x in inputs]
        readings, expected = (nondeterministic_stack(*x, backend=fast_backend) for x in (inputs, wide))
        assert_agree(readings, expected, inputs, 1e-6, 1e-5, rounding=1e-5, wide=wide)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1), masked=st.sampled_from([0.0, 0.3]), backend=st.sampled_from(["native", "pytorch"])
)
def test_mixtures(seed: int, masked: float, backend: str) -> None:
    """Each step takes its log weights from one of the kinds, each with a cost of its own."""
    torch.manual_seed(seed)
    length = 11
    parts = [adversarial(kind, float(torch.rand(()) * 1400), length) for kind in KINDS]
    chosen = torch.randint(len(KINDS), (length,))
    mixed = [torch.stack([parts[k][i].detach()[:, t] for t, k in enumerate(chosen)], 1) for i in range(3)]
    mixed = [x.masked_fill(torch.rand_like(x) < masked, -torch.inf) for x in mixed]
    inputs = [x.requires_grad_() for x in (*mixed, *(x.detach() for x in parts[0][3:]))]
    assert_equal_results(inputs, backend, 1e-9, rounding=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_steps(kind: str, columns: type) -> None:
    """Readings and gradients through the steps; the states go on in logarithms from where float64 does not suffice."""
    inputs = adversarial(kind, 700.0, 11)
    first = initial_state(inputs)
    assert isinstance(first.columns, columns)
    readings, state = step_through(inputs, first)
    assert isinstance(state.columns, TrackedColumns)
    expected = nondeterministic_stack(*inputs, backend="reference")
    assert_agree(readings, expected, inputs, 1e-9, rounding=1e-9)
    with torch.no_grad():
        decoded, _ = step_through(inputs, initial_state(inputs))
    assert_normwise_close(decoded, expected, 1e-9)


@pytest.mark.usefixtures("columns")
def test_steps_that_branch() -> None:
    """Batch rows are chosen before the steps that need logarithms, and a state is continued in two ways."""
    easy, hard = random_inputs(2, 4, 2, 3, 3), adversarial("stuck", 700.0, 9)
    index = torch.tensor([1, 1, 0])
    state = step_through(easy, initial_state(easy))[1].reorder(index)
    continued = [x[index] for x in hard[:4]]
    whole = [*(torch.cat([x[index], y], 1) for x, y in zip(easy[:4], continued, strict=True)), easy[4]]
    expected = nondeterministic_stack(*whole, backend="reference")[:, 4:]
    for _ in range(2):
        readings, _ = step_through([*continued, easy[4]], state)
        assert_agree(readings, expected, [*easy, *hard[:4]], 1e-9, rounding=1e-9)


@pytest.mark.usefixtures("columns")
def test_log_weights_of_the_start() -> None:
    inputs = random_inputs(2, 6, 2, 3, 3)
    start = torch.randn(2, 2, 3, dtype=torch.float64) * 1000
    results = []
    for replaced in (False, True):
        state = initial_state(inputs, start=start, weighs=True)
        if replaced:
            columns = TrackedColumns.initial(inputs[4].expand(2, -1), 2, 3, None, start.flatten(1))
            state = state._with(columns, state.log_scale)
        readings, state = step_through(inputs, state)
        results.append((readings, state.log_weights))
    for actual, want in zip(*results, strict=True):
        assert_normwise_close(actual, want, 1e-12)


@pytest.mark.parametrize("window", [1, 2, 5])
def test_limited_memory(window: int) -> None:
    for kind in KINDS:
        assert_equal_results(adversarial(kind, 700.0, 9), rounding=1e-9, window=window)


@pytest.mark.usefixtures("compiled")
def test_what_takes_the_slow_way() -> None:
    """Sequences with forbidden transitions do not, nor do those beside a sequence that has to."""

    def slow(inputs: Sequence[Tensor]) -> list[bool]:
        push, replace, pop, values, bottom = (x.detach() for x in inputs)
        vectors = torch.cat([bottom.expand(len(values), 1, -1), values], 1)
        *_, inexact = native._stack(join_transitions(push, replace, pop), vectors, push.shape[2])
        taken: list[bool] = inexact.tolist()
        return taken

    for masked in (0.1, 0.5, 0.8):
        assert slow(random_inputs(3, 63, 2, 3, 3, std=10.0, masked=masked)) == [False] * 3
    assert slow(adversarial("hindsight", 50.0, 40)) == [False] * 2
    inputs = random_inputs(3, 12, 2, 3, 3)
    with torch.no_grad():
        inputs[1][1, 5] -= 800
    assert slow(inputs) == [False, True, False]
