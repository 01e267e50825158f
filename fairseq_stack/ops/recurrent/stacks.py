"""What an LSTM's stacks are: the sizes and options that a loop over all steps needs to know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from torch import Tensor

from .._arguments import check_sizes

PushedSuperposition = Literal["sigmoid", "identity", "hidden"]
PushedStratification = Literal["sigmoid", "tanh"]
PushedAutomaton = Literal["sigmoid", "exponential", "ones"]


def _check_pushes(pushes: str, known: Any) -> None:
    if pushes not in get_args(known):
        raise ValueError(f"pushes: expected one of {', '.join(get_args(known))}, got {pushes!r}")


class _EmptyAtFirst:
    """A stack that is empty before the first step, and whose reading is one vector."""

    size: int

    @property
    def reading_size(self) -> int:
        """The size of its reading."""
        return self.size

    @property
    def bottom_size(self) -> int:
        """The size of the vector that lies on it before the first step: there is none."""
        return 0


@dataclass(frozen=True)
class ControlledSuperposition(_EmptyAtFirst):
    """A superposition stack (Eqs. 5-8), driven by projections of the hidden state h_t.

    Its actions are the softmax of 3 projections: push, no-op and pop.

    Attributes:
        size: the size m of the pushed vectors.
        pushes: what is pushed: a function of m further projections, or else ``"hidden"``, h_t itself.
        depth_limit: how many elements it holds, or None for no limit.

    Raises:
        ValueError: a value is none of these.
    """

    size: int
    pushes: PushedSuperposition = "sigmoid"
    depth_limit: int | None = None

    def __post_init__(self) -> None:
        check_sizes(depth_limit=self.depth_limit)
        _check_pushes(self.pushes, PushedSuperposition)

    @property
    def num_projected(self) -> int:
        """How many projections of h_t drive it."""
        return 3 if self.pushes == "hidden" else 3 + self.size


@dataclass(frozen=True)
class ControlledStratification(_EmptyAtFirst):
    """A stratification stack (Section 2.1 of Hao et al., 2018), driven by projections of the hidden state h_t.

    The sigmoids of its first 2 projections are the strengths of popping and of pushing.

    Attributes:
        size: the size m of the pushed vectors.
        pushes: what is pushed: a function of m further projections.

    Raises:
        ValueError: a value is none of these.
    """

    size: int
    pushes: PushedStratification = "sigmoid"

    def __post_init__(self) -> None:
        _check_pushes(self.pushes, PushedStratification)

    @property
    def num_projected(self) -> int:
        """How many projections of h_t drive it."""
        return 2 + self.size


@dataclass(frozen=True)
class ControlledAutomaton:
    """A nondeterministic stack (Eqs. 21-29), driven by projections of the hidden state h_t.

    The first C (2 C + Q) projections, for C = Q S, are the log weights of the transitions from each (q, x): C pushes,
    C replacements and Q pops.

    Attributes:
        num_states: Q.
        num_symbols: S.
        size: the size m of the vectors.
        pushes: what is pushed: a function of m further projections, or else ``"ones"``, a vector of ones.
        window: D for limited memory, or None.
        normalized: whether the weights of the transitions from each (q, x) are made to sum to 1.
        original_bottom: whether the first step only pushes, with the transitions from (0, 0), onto nothing. What it
            pushes is then the bottom, and can be replaced.
        states_in_reading: whether the reading is of all (r, y), or else a sum over the states r.

    Raises:
        ValueError: a value is none of these.
    """

    num_states: int
    num_symbols: int
    size: int
    pushes: PushedAutomaton = "sigmoid"
    window: int | None = None
    normalized: bool = False
    original_bottom: bool = False
    states_in_reading: bool = True

    def __post_init__(self) -> None:
        check_sizes(num_states=self.num_states, num_symbols=self.num_symbols, window=self.window)
        _check_pushes(self.pushes, PushedAutomaton)

    @property
    def num_tops(self) -> int:
        """C."""
        return self.num_states * self.num_symbols

    @property
    def num_actions(self) -> int:
        """How many transitions there are."""
        return self.num_tops * (2 * self.num_tops + self.num_states)

    @property
    def num_projected(self) -> int:
        """How many projections of h_t drive it."""
        return self.num_actions + (0 if self.pushes == "ones" else self.size)

    @property
    def reading_size(self) -> int:
        """The size of its reading."""
        return (self.num_tops if self.states_in_reading else self.num_symbols) * self.size

    @property
    def bottom_size(self) -> int:
        """The size of the vector v_0 at the bottom."""
        return self.size


ControlledStack = ControlledSuperposition | ControlledStratification | ControlledAutomaton

Weights = Sequence[Tensor]
"""``recurrent``, ``driving``, ``bias``, ``reading`` and ``bottoms``, as ``stack_lstm`` takes them."""
