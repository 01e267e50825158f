"""Runs of the automaton of a nondeterministic stack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

Operation = Literal["push", "replace", "pop"]


class Configuration(NamedTuple):
    """A state, and the symbol on top of the stack."""

    state: int
    symbol: int


class Step(NamedTuple):
    """A transition.

    Attributes:
        operation: what it does to the stack.
        source: the configuration before it.
        state: the state after it.
        symbol: what it pushes, or puts in the place of the top; None for a pop.
    """

    operation: Operation
    source: Configuration
    state: int
    symbol: int | None


class Item(NamedTuple):
    """What lies on a stack: a symbol, and the step that pushed its vector, which is 0 for the bottom."""

    symbol: int
    pushed: int


@dataclass(frozen=True)
class Run:
    """A run of the automaton.

    Attributes:
        log_weight: the sum of the log weights of its start and its steps.
        start: the configuration that it starts in.
        steps: its transitions.
    """

    log_weight: float
    start: Configuration
    steps: tuple[Step, ...]

    def stacks(self) -> list[tuple[Item, ...]]:
        """The stack before the first step and after each step, from the bottom to the top."""
        stack: tuple[Item, ...] = (Item(self.start.symbol, 0),)
        stacks = [stack]
        for t, step in enumerate(self.steps, 1):
            if step.symbol is None:
                stack = stack[:-1]
            elif step.operation == "push":
                stack = (*stack, Item(step.symbol, t))
            else:
                stack = (*stack[:-1], Item(step.symbol, stack[-1].pushed))
            stacks.append(stack)
        return stacks
