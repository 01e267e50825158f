"""Launches the kernels of ``step.py``: memory and grids."""

from __future__ import annotations

import torch
from torch import Tensor

from .._columns import Blocks, NewColumn, Past, Step, Top
from .._precision import Spread
from . import step as kernels
from .sizes import power_of_two

ELEMENTS = 4096  # of a tile of products


def step_triton(past: Past, logits: Tensor, window: int | None, gamma: Tensor, exponents: Tensor) -> Step:
    """A step, as ``_step_backends.ComputeStep``."""
    batch_size, num_symbols, num_states, rows, size = gamma.shape
    steps, columns = rows - 1, rows - 2
    made = past.alpha.new_empty
    width = 2 * size + num_states
    transitions = made(batch_size, size, width)
    ranges, marks, alpha_exponent, deepest, least = (made(batch_size) for _ in range(5))
    masked, is_lost = (made(batch_size, dtype=torch.bool) for _ in range(2))
    sums, lowest, smallest = (made(batch_size, rows) for _ in range(3))
    popped = made(batch_size * num_symbols, num_states, columns * num_states)
    popped_exponents = made(batch_size, columns)
    numerators, keys, alpha = made(batch_size, rows, size), made(batch_size, rows, 2), made(batch_size, size)
    padded = {"CP": power_of_two(size), "QP": power_of_two(num_states)}
    configurations = {"Q": num_states, "S": num_symbols}
    strides = _strides(gamma)
    kernels.weigh[batch_size,](
        logits.contiguous(), transitions, ranges, masked, marks, C=size, WIDTH=width, WP=power_of_two(size * width)
    )
    kernels.move[rows, batch_size](
        transitions, past.newest, past.exponents, past.alpha, gamma, sums, lowest, popped, popped_exponents, smallest,
        steps, *_strides(past.newest), *past.exponents.stride(), *strides, **configurations, **padded,
    )  # fmt: skip
    begin = 0
    for blocks in past.blocks:
        _add_pops(blocks, begin, gamma, sums, lowest, popped, popped_exponents)
        begin += blocks.mantissas.shape[2]
    kernels.finish[rows, batch_size](
        gamma, exponents, sums, smallest, past.alpha, past.alpha_exponents, numerators, keys, steps,
        *strides, *exponents.stride(), **configurations, CP=padded["CP"], FORGETS=window == 1,
    )  # fmt: skip
    kernels.read[batch_size,](
        numerators, keys, sums, lowest, smallest, alpha, alpha_exponent, deepest, least, is_lost, rows,
        C=size, CP=padded["CP"], PART=max(1, ELEMENTS // 4 // padded["CP"]),
    )  # fmt: skip
    return Step(
        transitions,
        NewColumn(gamma.new_empty(0), exponents, sums, popped, popped_exponents, deepest),
        Top(numerators, alpha, alpha_exponent, is_lost),
        marks,
        Spread(ranges, masked),
        least.log2(),
    )


def _add_pops(
    blocks: Blocks, begin: int, gamma: Tensor, sums: Tensor, lowest: Tensor, popped: Tensor, popped_exponents: Tensor
) -> None:
    """The pops to the columns of a panel, of which the first has the number ``begin``."""
    batch_size, num_symbols, num_states, rows, size = gamma.shape
    columns = blocks.mantissas.shape[2]
    padded = {"CP": power_of_two(size), "QP": power_of_two(num_states), "SP": power_of_two(num_symbols)}
    of_blocks = blocks.mantissas.stride()[:4]
    kernels.add_pops[min(rows - 2, begin + columns), batch_size](
        gamma, sums, lowest, popped, popped_exponents, *blocks, rows - 1, begin, columns,
        *_strides(gamma), *of_blocks, *blocks.exponents.stride(), Q=num_states, S=num_symbols, **padded,
        PART=max(1, ELEMENTS // (padded["CP"] * padded["SP"] * padded["QP"])),
    )  # fmt: skip


def _strides(block: Tensor) -> tuple[int, ...]:
    """Of the batch, of symbols and of states; rows (x) have the stride C."""
    return block.stride()[:3]
