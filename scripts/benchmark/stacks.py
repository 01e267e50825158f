"""The stacks to be measured: a case is a stack with its sizes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from fairseq_stack.ops import (
    NondeterministicStackState,
    StratificationStackState,
    SuperpositionStackState,
    nondeterministic,
    nondeterministic_stack,
    stratification,
    stratification_stack,
    superposition,
    superposition_stack,
)

Tensors = dict[str, Tensor]

BETWEEN_STEPS = "bottom"
"""The one argument of a stack that has no axis of steps."""


@dataclass(frozen=True)
class Stack(ABC):
    """A stack with its sizes; subclasses add those that only they have, in the order of ``axes``.

    Attributes:
        batch_size: B.
        length: n.
    """

    batch_size: int
    length: int

    name: ClassVar[str]
    axes: ClassVar[tuple[str, ...]]
    backends: ClassVar[Mapping[str, Callable[..., Any]]]

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes by the letters of ``axes``."""
        return dict(zip(self.axes, astuple(self), strict=True))

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(map(str, astuple(self)))})"

    @abstractmethod
    def small(self) -> Stack:
        """A case that differs only in sizes that the kernels are not specialised for, and is quick to compute."""

    @abstractmethod
    def arguments(self, random: Callable[..., Tensor]) -> Tensors:
        """Random arguments as models have them; ``random`` draws Gaussian numbers of the shape that it is given."""

    def readings_shape(self) -> tuple[int, ...]:
        """The shape of the readings, in which the axes of all three stacks come in the order of their sizes."""
        return astuple(self)

    @abstractmethod
    def readings(self, inputs: Tensors, backend: str) -> Tensor:
        """The readings r_1..r_n by a backend."""

    @abstractmethod
    def initial_state(self, inputs: Tensors) -> Any:
        """The state before the first step."""

    @abstractmethod
    def step(self, state: Any, inputs: Tensors) -> tuple[Tensor, Any]:
        """The reading and the state after a step, for the arguments of that step only."""

    @abstractmethod
    def multiply_adds(self) -> float:
        """How many multiply-adds the forward pass of the best known algorithm takes, leading terms only."""

    def inputs(self, dtype: torch.dtype, device: torch.device, seed: int = 0) -> Tensors:
        """Random arguments that require gradients: the same for all devices and, rounded, for all dtypes."""
        generator = torch.Generator().manual_seed(seed)

        def random(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=generator, dtype=torch.float64)

        return {name: argument.to(device, dtype).requires_grad_() for name, argument in self.arguments(random).items()}


@dataclass(frozen=True)
class Nondeterministic(Stack):
    """The nondeterministic stack.

    Attributes:
        num_states: Q.
        num_symbols: S.
        size: m.
    """

    num_states: int
    num_symbols: int
    size: int

    name = "nd"
    axes = ("B", "n", "Q", "S", "m")
    backends = nondeterministic.BACKENDS

    def small(self) -> Stack:
        return replace(self, batch_size=2, length=min(self.length, 9), size=min(self.size, 3))

    def arguments(self, random: Callable[..., Tensor]) -> Tensors:
        steps, top = (self.batch_size, self.length), (self.num_states, self.num_symbols)
        return {
            "push": random(*steps, *top, *top),
            "replace": random(*steps, *top, *top),
            "pop": random(*steps, *top, self.num_states),
            "values": random(*steps, self.size).sigmoid(),
            BETWEEN_STEPS: random(self.size).sigmoid(),
        }

    def readings(self, inputs: Tensors, backend: str) -> Tensor:
        return nondeterministic_stack(
            inputs["push"],
            inputs["replace"],
            inputs["pop"],
            inputs["values"],
            inputs[BETWEEN_STEPS],
            backend=backend,
        )

    def initial_state(self, inputs: Tensors) -> NondeterministicStackState:
        return NondeterministicStackState.initial(
            inputs[BETWEEN_STEPS],
            batch_size=self.batch_size,
            num_states=self.num_states,
            num_symbols=self.num_symbols,
        )

    def step(self, state: NondeterministicStackState, inputs: Tensors) -> tuple[Tensor, NondeterministicStackState]:
        return state.step(inputs["push"], inputs["replace"], inputs["pop"], inputs["values"])

    def multiply_adds(self) -> float:
        """Those of the pop rule: Q^3 S^2 for each i < k < t."""
        return self.batch_size * self.num_states**3 * self.num_symbols**2 * self.length**3 / 6


@dataclass(frozen=True)
class Superposition(Stack):
    """The superposition stack.

    Attributes:
        size: m.
    """

    size: int

    name = "sup"
    axes = ("B", "n", "m")
    backends = superposition.BACKENDS

    def small(self) -> Stack:
        return replace(self, batch_size=2, length=min(self.length, 9), size=min(self.size, 20))

    def arguments(self, random: Callable[..., Tensor]) -> Tensors:
        return {
            "actions": random(self.batch_size, self.length, 3).softmax(2),
            "values": random(self.batch_size, self.length, self.size).sigmoid(),
        }

    def readings(self, inputs: Tensors, backend: str) -> Tensor:
        return superposition_stack(**inputs, backend=backend)

    def initial_state(self, inputs: Tensors) -> SuperpositionStackState:
        values = inputs["values"]
        return SuperpositionStackState.initial(
            batch_size=self.batch_size, size=self.size, dtype=values.dtype, device=values.device
        )

    def step(self, state: SuperpositionStackState, inputs: Tensors) -> tuple[Tensor, SuperpositionStackState]:
        return state.step(inputs["actions"], inputs["values"])

    def multiply_adds(self) -> float:
        """Three for each pair of s <= t and depth that can come back, and the product of weights and vectors.

        There are n^3 / 12 such depths: at most t - s + 1 and at most n - t + 1 for each pair.
        """
        walk = 3 * self.length**3 / 12
        return self.batch_size * (walk + self.length**2 / 2 * self.size)


@dataclass(frozen=True)
class Stratification(Stack):
    """The stratification stack.

    Attributes:
        size: m.
    """

    size: int

    name = "strat"
    axes = ("B", "n", "m")
    backends = stratification.BACKENDS

    def small(self) -> Stack:
        return replace(self, batch_size=2, length=min(self.length, 9), size=min(self.size, 20))

    def arguments(self, random: Callable[..., Tensor]) -> Tensors:
        return {
            "pop": random(self.batch_size, self.length).sigmoid(),
            "push": random(self.batch_size, self.length).sigmoid(),
            "values": random(self.batch_size, self.length, self.size).tanh(),
        }

    def readings(self, inputs: Tensors, backend: str) -> Tensor:
        return stratification_stack(**inputs, backend=backend)

    def initial_state(self, inputs: Tensors) -> StratificationStackState:
        values = inputs["values"]
        return StratificationStackState.initial(
            batch_size=self.batch_size, size=self.size, dtype=values.dtype, device=values.device
        )

    def step(self, state: StratificationStackState, inputs: Tensors) -> tuple[Tensor, StratificationStackState]:
        return state.step(inputs["pop"], inputs["push"], inputs["values"])

    def multiply_adds(self) -> float:
        """Those of the product of weights and vectors."""
        return self.batch_size * self.length**2 / 2 * self.size


STACKS: dict[str, type[Stack]] = {stack.name: stack for stack in (Nondeterministic, Superposition, Stratification)}
