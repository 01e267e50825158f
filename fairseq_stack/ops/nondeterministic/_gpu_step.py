"""A step by Triton kernels, for GPUs: memory and grids for ``_triton/nondeterministic/step.py``. Names are as there."""

from __future__ import annotations

import torch
from torch import Tensor

from .._triton.devices import on_their_device
from .._triton.nondeterministic import step as kernels
from .._triton.nondeterministic.sizes import power_of_two
from ._columns import Blocks, NewColumn, Past, Step, Top
from ._log_weights import Spread

ELEMENTS = 4096  # of a tile of products


@on_their_device
def step_triton(past: Past, logits: Tensor, window: int | None, gamma: Tensor, exponents: Tensor) -> Step:
    """A step, as ``_panel_columns.ComputeStep``."""
    transitions, mark, spread = _weigh(logits, past.alpha)
    pops, rows = _move(past, transitions, gamma)
    begin = 0
    for blocks in past.blocks:
        _add_pops(blocks, begin, pops, gamma, rows)
        begin += blocks.mantissas.shape[2]
    top, deepest, least = _read(past, window, gamma, exponents, rows)
    column = NewColumn(gamma.new_empty(0), exponents, rows.sums, *pops, deepest)
    return Step(transitions, column, top, mark, spread, least.log2())


def _weigh(logits: Tensor, like: Tensor) -> tuple[Tensor, Tensor, Spread]:
    """Delta_t, (B, C, 2 C + Q), and the mark and the spread of the step."""
    batch_size, size, width = logits.shape
    transitions = like.new_empty(logits.shape)
    ranges, mark = like.new_empty(batch_size), like.new_empty(batch_size)
    masked = like.new_empty(batch_size, dtype=torch.bool)
    kernels.weigh[batch_size,](
        logits.contiguous(), transitions, ranges, masked, mark, C=size, WIDTH=width, WP=power_of_two(size * width)
    )
    return transitions, mark, Spread(ranges, masked)


def _move(past: Past, transitions: Tensor, gamma: Tensor) -> tuple[kernels.Pops, kernels.Rows]:
    """Write to gamma what does not depend on pops."""
    batch_size, num_symbols, num_states, count, size = gamma.shape
    columns = count - 2
    pops = kernels.Pops(
        gamma.new_empty(batch_size * num_symbols, num_states, columns * num_states),
        gamma.new_empty(batch_size, columns),
    )
    rows = kernels.Rows(*(gamma.new_empty(batch_size, count) for _ in kernels.Rows._fields))
    kernels.move[count, batch_size](
        transitions, _column(past.newest), _exponents(past.exponents), past.alpha, _column(gamma), rows, pops,
        count - 1, Q=num_states, S=num_symbols, CP=power_of_two(size), QP=power_of_two(num_states),
    )  # fmt: skip
    return pops, rows


def _add_pops(blocks: Blocks, begin: int, pops: kernels.Pops, gamma: Tensor, rows: kernels.Rows) -> None:
    """Add the pops to the columns of a panel, of which the first has the number ``begin``."""
    batch_size, num_symbols, num_states, count, size = gamma.shape
    columns = blocks.mantissas.shape[2]
    padded = {"CP": power_of_two(size), "QP": power_of_two(num_states), "SP": power_of_two(num_symbols)}
    kernels.add_pops[min(count - 2, begin + columns), batch_size](
        _column(gamma), rows, pops, kernels.Blocks(blocks.mantissas, *blocks.mantissas.stride()[:4]),
        kernels.Exponents(blocks.exponents, *blocks.exponents.stride()), count - 1, begin, columns,
        Q=num_states, S=num_symbols, **padded, PART=max(1, ELEMENTS // (padded["CP"] * padded["SP"] * padded["QP"])),
    )  # fmt: skip


def _read(
    past: Past, window: int | None, gamma: Tensor, exponents: Tensor, rows: kernels.Rows
) -> tuple[Top, Tensor, Tensor]:
    """Write mantissas and exponents of column t.

    Returns:
        What is read, and for each sequence how deep the lowest summand is and the smallest mantissa except 0, (B,).
    """
    batch_size, num_symbols, num_states, count, size = gamma.shape
    numerators, keys = gamma.new_empty(batch_size, count, size), gamma.new_empty(batch_size, count, 2)
    kernels.finish[count, batch_size](
        _column(gamma), _exponents(exponents), rows, past.alpha, past.alpha_exponents, numerators, keys, count - 1,
        Q=num_states, S=num_symbols, CP=power_of_two(size), FORGETS=window == 1,
    )  # fmt: skip
    alpha, is_lost = gamma.new_empty(batch_size, size), gamma.new_empty(batch_size, dtype=torch.bool)
    exponent, deepest, least = (gamma.new_empty(batch_size) for _ in range(3))
    kernels.read[batch_size,](
        numerators, keys, rows, alpha, exponent, deepest, least, is_lost, count,
        C=size, CP=power_of_two(size), PART=max(1, ELEMENTS // 4 // power_of_two(size)),
    )  # fmt: skip
    return Top(numerators, alpha, exponent, is_lost), deepest, least


def _column(gamma: Tensor) -> kernels.Blocks:
    """A column, (B, S, Q, t + 1, C), whose rows have the stride C."""
    batch, symbol, state, *_ = gamma.stride()
    return kernels.Blocks(gamma, batch, symbol, 0, state)


def _exponents(exponents: Tensor) -> kernels.Exponents:
    """Those of a column, (B, t + 1)."""
    batch, row = exponents.stride()
    return kernels.Exponents(exponents, batch, row, 0)
