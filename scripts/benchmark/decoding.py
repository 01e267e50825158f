"""Decoding with a beam: steps of a state, each after the rows have been reordered."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from .agreement import normwise_error, refuse_if_wrong
from .stacks import BETWEEN_STEPS, Case, Tensors
from .timing import Timer, Times
from .variants import dtype_name, pytorch


def check_decoding(case: Case, dtype: torch.dtype, device: torch.device) -> float:
    """Compare a beam's last reading with PyTorch's in float64 for the sequences that its rows came from.

    Returns:
        The largest error, relative to the largest element.

    Raises:
        Disagreement: if it is too large.
    """
    inputs = _inputs(case, dtype, device)
    order = _order(case, device)
    ancestors = torch.arange(case.batch_size, device=device).expand(case.length, -1).clone()
    for t in range(1, case.length):
        ancestors[:t] = ancestors[:t, order[t]]
    with torch.no_grad():
        reading = _decode(case, inputs, order)
        expected = pytorch(case, torch.float64).compute(_of_ancestors(inputs, ancestors.T))[:, -1]
    error = normwise_error(reading, expected)
    refuse_if_wrong(f"decoding {dtype_name(dtype)} is wrong: for {case}, readings differ", error, dtype)
    return error


def decoding(case: Case, dtype: torch.dtype, timer: Timer) -> Callable[[], Times]:
    """A run of n steps with a beam of B rows: returns the seconds that all, and that the last of ten parts, took."""
    inputs = _inputs(case, dtype, timer.device)
    order = _order(case, timer.device)
    last_part = case.length - case.length // 10

    def run() -> Times:
        lap = timer.start()
        before = 0.0

        def look(t: int) -> None:
            nonlocal before
            if t == last_part:
                before = lap()

        with torch.no_grad():
            _decode(case, inputs, order, look)
        after = lap()
        return before + after, after

    return run


def last_steps(case: Case) -> int:
    """How many steps the last part of a run has."""
    return max(1, case.length // 10)


def _decode(case: Case, inputs: Tensors, order: Tensor, look: Callable[[int], None] = lambda t: None) -> Tensor:
    """The reading after the last step; ``look`` is called with t before step t + 1."""
    state = case.initial_state(inputs)
    by_step = [
        {name: tensor if name == BETWEEN_STEPS else tensor[:, t] for name, tensor in inputs.items()}
        for t in range(case.length)
    ]
    reading = torch.empty(0)
    for t, step in enumerate(by_step):
        look(t)
        reading, state = case.step(state.reorder(order[t]), step)
    return reading


def _inputs(case: Case, dtype: torch.dtype, device: torch.device) -> Tensors:
    return {name: tensor.detach() for name, tensor in case.inputs(dtype, device).items()}


def _order(case: Case, device: torch.device) -> Tensor:
    """The rows from which each step continues, (n, B)."""
    generator = torch.Generator().manual_seed(2)
    return torch.randint(case.batch_size, (case.length, case.batch_size), generator=generator).to(device)


def _of_ancestors(inputs: Tensors, ancestors: Tensor) -> Tensors:
    """In float64, the arguments that the final rows have seen; ``ancestors`` (B, n) are the rows that they were in."""
    steps = torch.arange(ancestors.shape[1], device=ancestors.device)
    return {
        name: (tensor if name == BETWEEN_STEPS else tensor[ancestors, steps]).double()
        for name, tensor in inputs.items()
    }
