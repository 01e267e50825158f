"""The stacks to be measured: a record for each; a case is a stack with its sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from fairseq_stack.modules import (
    NondeterministicStackAttention,
    StratificationStackAttention,
    SuperpositionStackAttention,
)
from fairseq_stack.ops import (
    Backend,
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
Sizes = tuple[int, ...]

BETWEEN_STEPS = "bottom"
"""The one argument of a stack that has no axis of steps."""


@dataclass(frozen=True, eq=False)
class Stack:
    """A stack, and everything that the benchmark knows about it.

    Attributes:
        name: in options and tables.
        axes: a letter for each size. The first two are B and n, and the readings have the shape of all sizes.
        op: the readings for the arguments, in their order, and a backend.
        backends: the implementations of ``op`` by name.
        arguments: random arguments as models have them, for a function that draws Gaussian numbers of a shape, and the
            sizes.
        initial_state: the state before the first step, for the arguments and the sizes. Its ``step`` takes the
            arguments of a step in the order of ``arguments``, without :data:`BETWEEN_STEPS`.
        multiply_adds: how many multiply-adds the forward pass of the best known algorithm takes for the sizes, leading
            terms only.
        most: the largest sizes, by axis, of a case that is quick to compute. Sizes that the kernels are specialised
            for are not limited.
        sublayer: the class of the sublayer that computes the stack in a model.
        sublayer_sizes: the attributes of the sublayer that hold the sizes after B and n.
        timed: the sizes that are measured unless others are given.
        decoded: the sizes for decoding.
        swept: the sizes for the sweep.
        quick: the sizes for a quick run.
    """

    name: str
    axes: tuple[str, ...]
    op: Callable[..., Tensor]
    backends: Mapping[str, Backend]
    arguments: Callable[..., Tensors]
    initial_state: Callable[[Tensors, Sizes], Any]
    multiply_adds: Callable[..., float]
    most: Mapping[str, int]
    sublayer: type[nn.Module]
    sublayer_sizes: tuple[str, ...]
    timed: tuple[Sizes, ...]
    decoded: tuple[Sizes, ...]
    swept: tuple[Sizes, ...]
    quick: tuple[Sizes, ...]


@dataclass(frozen=True)
class Case:
    """A stack with its sizes, in the order of its axes."""

    stack: Stack
    sizes: Sizes

    @property
    def batch_size(self) -> int:
        """B."""
        return self.sizes[0]

    @property
    def length(self) -> int:
        """n."""
        return self.sizes[1]

    def by_axis(self) -> dict[str, int]:
        """The sizes by the letters of the axes."""
        return dict(zip(self.stack.axes, self.sizes, strict=True))

    def __str__(self) -> str:
        return f"{self.stack.name} ({', '.join(map(str, self.sizes))})"

    def small(self) -> Case:
        """A case of two sequences that differs only in sizes that the kernels are not specialised for."""
        sizes = {axis: min(size, self.stack.most.get(axis, size)) for axis, size in self.by_axis().items()}
        return Case(self.stack, tuple((sizes | {"B": 2}).values()))

    def inputs(self, dtype: torch.dtype, device: torch.device, seed: int = 0) -> Tensors:
        """Random arguments that require gradients: the same for all devices and, rounded, for all dtypes."""
        generator = torch.Generator().manual_seed(seed)

        def random(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=generator, dtype=torch.float64)

        arguments = self.stack.arguments(random, *self.sizes)
        return {name: argument.to(device, dtype).requires_grad_() for name, argument in arguments.items()}

    def readings(self, inputs: Tensors, backend: str) -> Tensor:
        """The readings r_1..r_n by a backend."""
        return self.stack.op(*inputs.values(), backend=backend)

    def initial_state(self, inputs: Tensors) -> Any:
        """The state before the first step."""
        return self.stack.initial_state(inputs, self.sizes)

    def step(self, state: Any, inputs: Tensors) -> tuple[Tensor, Any]:
        """The reading and the state after a step, for the arguments of that step only."""
        reading, after = state.step(*(tensor for name, tensor in inputs.items() if name != BETWEEN_STEPS))
        return reading, after

    def multiply_adds(self) -> float:
        """The multiply-adds of the best known algorithm's forward pass, leading terms only."""
        return self.stack.multiply_adds(*self.sizes)


def _nondeterministic_arguments(
    random: Callable[..., Tensor], batch_size: int, length: int, num_states: int, num_symbols: int, size: int
) -> Tensors:
    steps, top = (batch_size, length), (num_states, num_symbols)
    return {
        "push": random(*steps, *top, *top),
        "replace": random(*steps, *top, *top),
        "pop": random(*steps, *top, num_states),
        "values": random(*steps, size).sigmoid(),
        BETWEEN_STEPS: random(size).sigmoid(),
    }


def _nondeterministic_state(inputs: Tensors, sizes: Sizes) -> NondeterministicStackState:
    batch_size, _, num_states, num_symbols, _ = sizes
    return NondeterministicStackState.initial(
        inputs[BETWEEN_STEPS], batch_size=batch_size, num_states=num_states, num_symbols=num_symbols
    )


def _nondeterministic_multiply_adds(
    batch_size: int, length: int, num_states: int, num_symbols: int, size: int
) -> float:
    """The multiply-adds of the pop rule: Q^3 S^2 for each i < k < t."""
    return batch_size * num_states**3 * num_symbols**2 * length**3 / 6


def _superposition_arguments(random: Callable[..., Tensor], batch_size: int, length: int, size: int) -> Tensors:
    return {
        "actions": random(batch_size, length, 3).softmax(2),
        "values": random(batch_size, length, size).sigmoid(),
    }


def _superposition_multiply_adds(batch_size: int, length: int, size: int) -> float:
    """Three for each pair of s <= t and depth that can come back, and the product of weights and vectors.

    There are n^3 / 12 such depths: at most t - s + 1 and at most n - t + 1 for each pair.
    """
    walk = 3 * length**3 / 12
    return batch_size * (walk + length**2 / 2 * size)


def _stratification_arguments(random: Callable[..., Tensor], batch_size: int, length: int, size: int) -> Tensors:
    return {
        "pop": random(batch_size, length).sigmoid(),
        "push": random(batch_size, length).sigmoid(),
        "values": random(batch_size, length, size).tanh(),
    }


def _stratification_multiply_adds(batch_size: int, length: int, size: int) -> float:
    """The multiply-adds of the product of weights and vectors."""
    return batch_size * length**2 / 2 * size


def _state_of_vectors(state: type[SuperpositionStackState] | type[StratificationStackState]) -> Callable[..., Any]:
    def initial(inputs: Tensors, sizes: Sizes) -> Any:
        values = inputs["values"]
        return state.initial(batch_size=sizes[0], size=sizes[-1], dtype=values.dtype, device=values.device)

    return initial


_STACKS = (
    Stack(
        name="nd",
        axes=("B", "n", "Q", "S", "m"),
        op=nondeterministic_stack,
        backends=nondeterministic.BACKENDS,
        arguments=_nondeterministic_arguments,
        initial_state=_nondeterministic_state,
        multiply_adds=_nondeterministic_multiply_adds,
        most={"n": 9, "m": 3},
        sublayer=NondeterministicStackAttention,
        sublayer_sizes=("num_states", "num_symbols", "value_size"),
        timed=(
            *((10, 40, 2, 3, 5), (16, 30, 3, 3, 10), (10, 80, 3, 3, 5), (10, 100, 3, 3, 5)),
            *((4, 200, 3, 3, 5), (1, 400, 3, 3, 5)),
        ),
        decoded=((10, 40, 2, 3, 5), (10, 80, 3, 3, 5), (10, 200, 3, 3, 5)),
        swept=(
            *((1, 1, 1, 1, 1), (16, 1, 3, 3, 5), (1, 10, 1, 1, 1), (16, 10, 2, 3, 5), (1, 10, 3, 3, 64)),
            *((64, 10, 3, 3, 5), (2, 20, 5, 5, 5), (1, 50, 1, 1, 64), (16, 50, 2, 3, 5), (1, 50, 3, 3, 5)),
            *((2, 50, 2, 8, 5), (1, 200, 1, 1, 1), (1, 200, 2, 3, 5), (4, 200, 3, 3, 64)),
        ),
        quick=((2, 12, 2, 3, 4),),
    ),
    Stack(
        name="sup",
        axes=("B", "n", "m"),
        op=superposition_stack,
        backends=superposition.BACKENDS,
        arguments=_superposition_arguments,
        initial_state=_state_of_vectors(SuperpositionStackState),
        multiply_adds=_superposition_multiply_adds,
        most={"n": 9, "m": 20},
        sublayer=SuperpositionStackAttention,
        sublayer_sizes=("value_size",),
        timed=((10, 60, 32), (16, 30, 511), (10, 80, 511), (10, 200, 511), (2, 400, 256)),
        decoded=((10, 80, 511), (10, 200, 511)),
        swept=(
            *((1, 1, 1), (64, 1, 512), (1, 10, 1), (16, 10, 32), (64, 10, 512), (1, 100, 1), (16, 100, 32)),
            *((64, 100, 512), (1, 300, 1), (64, 300, 4), (16, 300, 32), (4, 300, 512), (1, 1000, 1), (64, 1000, 1)),
            *((4, 1000, 32), (1, 1000, 512), (1, 5000, 1), (16, 5000, 1), (1, 5000, 32), (1, 20000, 1)),
        ),
        quick=((2, 12, 4),),
    ),
    Stack(
        name="strat",
        axes=("B", "n", "m"),
        op=stratification_stack,
        backends=stratification.BACKENDS,
        arguments=_stratification_arguments,
        initial_state=_state_of_vectors(StratificationStackState),
        multiply_adds=_stratification_multiply_adds,
        most={"n": 9, "m": 20},
        sublayer=StratificationStackAttention,
        sublayer_sizes=("value_size",),
        timed=((10, 60, 32), (10, 80, 511), (10, 200, 511)),
        decoded=((10, 80, 511),),
        swept=((1, 2, 1), (64, 10, 32), (16, 100, 32), (1, 1000, 512)),
        quick=((2, 12, 4),),
    ),
)

STACKS = {stack.name: stack for stack in _STACKS}
