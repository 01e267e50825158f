"""What a recurrence keeps of the tokens that it has read, where the rows of a batch begin at different columns.

After the first call the state has not been computed yet: the inputs are kept, and read again if there is a second call.
Scoring sequences needs no state, and computing them in parallel is much faster than step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from fairseq_stack.ops._states import Rows, check_index

Extend = Callable[[Tensor, Any], tuple[Tensor, Any]]
"""Maps inputs (k, m, ...) and the state before them to outputs (k, m, d) and the state after them."""


@dataclass(frozen=True, eq=False)
class Unread(Rows):
    """The inputs of the first call, which the second one reads, with the parameters and dropout of its time. Immutable.

    Attributes:
        inputs: (B, n, ...).
        padding: (B, n), true at padding, which is not read; or None.
        follows: whether gradients flow to them: not if they were read without gradients, or the state is detached.
    """

    inputs: Tensor
    padding: Tensor | None
    follows: bool = field(default_factory=torch.is_grad_enabled)

    @property
    def num_rows(self) -> int:
        return len(self.inputs)

    def detach(self) -> Unread:
        """As :meth:`Rows.detach`."""
        return Unread(self.inputs.detach(), self.padding, follows=False)


class Group(NamedTuple):
    """The rows of a batch, (k,), in ascending order, that have read equally many symbols, and their state."""

    rows: Tensor
    state: Any


@dataclass(frozen=True, eq=False)
class Groups:
    """The states of all rows. Immutable."""

    groups: tuple[Group, ...]

    @property
    def num_rows(self) -> int:
        return sum(len(group.rows) for group in self.groups)

    def reorder(self, index: Tensor) -> Groups:
        """The states of the rows that ``index`` lists; rows may be left out, repeated and permuted.

        Raises:
            ValueError: if ``index`` is not a one-dimensional LongTensor of row numbers on the state's device.
        """
        if self.groups:
            check_index(index, self.groups[0].rows, self.num_rows)
        return Groups(tuple(group for before in self.groups for group in _reordered(before, index)))

    def detach(self) -> Groups:
        """The same states, through which no gradients flow to the tokens before."""
        return Groups(tuple(Group(rows, state.detach()) for rows, state in self.groups))


def extend(
    step: Extend,
    initial_state: Callable[[int], Any],
    inputs: Tensor,
    padding: Tensor | None,
    state: Unread | Groups,
) -> tuple[Tensor, Groups]:
    """Read further inputs.

    Args:
        step: the recurrence.
        initial_state: maps a number of rows to their state at the beginning.
        inputs: (B, n, ...).
        padding: (B, n), true at padding, which is not read; or None.
        state: the state before the inputs.

    Returns:
        the outputs, (B, n, d), 0 at padding, and the state after the inputs.

    Raises:
        ValueError: the state has another number of rows.
    """
    if len(inputs) != state.num_rows:
        raise ValueError(f"inputs: expected {state.num_rows} rows, as the state has, got {len(inputs)}")
    if isinstance(state, Unread):
        rows = torch.arange(len(inputs), device=inputs.device)
        beginning = Groups((Group(rows, initial_state(len(inputs))),))
        with torch.set_grad_enabled(state.follows and torch.is_grad_enabled()):
            _, state = extend(step, initial_state, state.inputs, state.padding, beginning)
    if padding is None and len(state.groups) == 1:
        outputs, after = step(inputs, state.groups[0].state)
        return outputs, Groups((Group(state.groups[0].rows, after),))
    symbols = inputs.new_ones(inputs.shape[:2], dtype=torch.bool) if padding is None else ~padding
    return _extend_groups(step, inputs, symbols, state)


def _extend_groups(step: Extend, inputs: Tensor, symbols: Tensor, state: Groups) -> tuple[Tensor, Groups]:
    """Read the inputs (B, n, ...) that are symbols, (B, n): rows that have read equally many make a group."""
    outputs, after = None, []
    for rows, before in _split(state.groups, symbols.sum(1)):
        read = torch.zeros_like(symbols).index_copy(0, rows, symbols[rows])
        count = int(symbols[rows[0]].sum())
        computed, group_state = step(inputs[read].unflatten(0, (len(rows), count)), before)
        if outputs is None:
            outputs = computed.new_zeros(*symbols.shape, computed.size(2))
        outputs = outputs.masked_scatter(read.unsqueeze(2), computed.to(outputs.dtype))  # autocast: two types
        after.append(Group(rows, group_state))
    assert outputs is not None, "a batch has rows"
    return outputs, Groups(tuple(after))


def _split(groups: tuple[Group, ...], counts: Tensor) -> Iterator[Group]:
    """Split groups into rows that are to read equally many symbols: ``counts``, (B,)."""
    for rows, state in groups:
        for count in counts[rows].unique():
            chosen = counts[rows].eq(count).nonzero().squeeze(1)
            yield Group(rows[chosen], state if len(chosen) == len(rows) else state.reorder(chosen))


def _reordered(group: Group, index: Tensor) -> Iterator[Group]:
    """The group after reordering, or nothing if none of its rows is left."""
    matches = index.unsqueeze(1).eq(group.rows)
    rows, places = matches.nonzero(as_tuple=True)
    if len(rows):
        yield Group(rows, group.state.reorder(places))
