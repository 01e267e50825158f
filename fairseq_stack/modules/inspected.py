"""What a stack has done while a model read a sentence, in numbers: what :meth:`StatefulAttention.inspected` returns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from fairseq_stack.ops import Run, stack_contents
from fairseq_stack.ops.nondeterministic import Configuration, Operation, StackEdge, Step, Transitions

OPERATIONS: tuple[Operation, ...] = ("push", "replace", "pop")
"""Of an automaton, in the order of the fields of Transitions."""


@dataclass(frozen=True, eq=False)
class InspectedStack:
    """What a stack does. All numbers are for n inputs, in float64.

    Attributes:
        layer: the layer's name in the model, such as ``decoder.layers.2``.
        inputs: the symbols that the layer reads.
        weights: row t belongs to the reading after input t, and each column to a pushed vector: the weight that it
            has in the reading, (n, n), or (n, n + 1) where the first column belongs to the bottom of the stack.
        actions: by name, how much of an operation there is in each step, (n,) each.
        pointers: for a stack with a pointer, the cell to which it points after each input, (n,).
        is_automaton: whether it is a nondeterministic stack.
        unit: what the numbers of the actions are.
    """

    layer: str
    inputs: tuple[str, ...]
    weights: Tensor
    actions: Mapping[str, Tensor]
    pointers: Tensor | None = field(default=None, kw_only=True)
    is_automaton: ClassVar[bool] = False
    unit: ClassVar[str] = "probability"

    @property
    def pushed(self) -> tuple[str, ...]:
        """What the columns of the weights stand for."""
        return self.inputs if self.weights.shape[1] == len(self.inputs) else ("bottom", *self.inputs)

    def operations(self) -> Tensor:
        """How much of each operation there is in each step, (n, number of operations)."""
        return torch.stack([*self.actions.values()], 1)

    def as_json(self) -> dict[str, Any]:
        """The numbers, as lists."""
        actions = {name: strength.tolist() for name, strength in self.actions.items()}
        pointers = {} if self.pointers is None else {"pointers": self.pointers.tolist()}
        return {
            "layer": self.layer,
            "inputs": list(self.inputs),
            "weights": self.weights.tolist(),
            "actions": actions,
            **pointers,
        }


@dataclass(frozen=True, eq=False)
class InspectedStratification(InspectedStack):
    """A stratification stack.

    Attributes:
        strengths: s_t[i], the strength of the item pushed at input i after input t, (n, n).
    """

    strengths: Tensor
    unit: ClassVar[str] = "strength"

    def as_json(self) -> dict[str, Any]:
        numbers = super().as_json()
        actions = numbers.pop("actions")
        return {**numbers, **actions, "strengths": self.strengths.tolist()}


class LikelyTransition(NamedTuple):
    """A transition that a run probably takes.

    Attributes:
        number: of the input at which it is taken, from 1 on.
        step: the transition.
        probability: its posterior probability, given the whole sentence.
    """

    number: int
    step: Step
    probability: float


@dataclass(frozen=True, eq=False)
class InspectedAutomaton(InspectedStack):
    """A nondeterministic stack, with vectors or without. Its actions are posterior probabilities.

    Attributes:
        log_weights: of all transitions, (n, Q, S, ...) each.
        posterior: the probability of each transition, given all inputs. It is NaN, like ``log_partition``, with limited
            memory that forgets and the original bottom of 2020 and 2022.
        log_partition: log Z, the logarithm of the weight of all runs over all inputs.
        window: D for limited memory that forgets some of the inputs; otherwise None.
        runs: the best runs, the best one first; none with limited memory that forgets, or if log Z is not finite.
    """

    log_weights: Transitions
    posterior: Transitions
    log_partition: float
    window: int | None
    runs: tuple[Run, ...]
    is_automaton: ClassVar[bool] = True

    @property
    def size(self) -> tuple[int, int]:
        """Q and S."""
        _, num_states, num_symbols, _ = self.log_weights.pop.shape
        return num_states, num_symbols

    def given_top(self) -> Transitions:
        """The weights of the transitions from each configuration, divided by their sum, which is 1 then."""
        joined = torch.cat([x.flatten(3) for x in self.log_weights], 3).softmax(3).nan_to_num(0)
        parts = joined.split([x[0, 0, 0].numel() for x in self.log_weights], 3)
        return Transitions(*(x.view_as(like) for x, like in zip(parts, self.log_weights, strict=True)))

    def shares(self) -> list[float]:
        """The share of the weight of all runs that each of the best runs has."""
        return [torch.tensor(run.log_weight - self.log_partition).exp().item() for run in self.runs]

    def likely_transitions(self, least: float) -> list[LikelyTransition]:
        """The transitions with a posterior probability of at least ``least``, by input and then by probability."""
        likely = []
        for operation, shares in zip(OPERATIONS, self.posterior, strict=True):
            for index in shares.ge(least).nonzero().tolist():
                t, q, x, r, *y = index
                step = Step(operation, Configuration(q, x), r, y[0] if y else None)
                likely.append(LikelyTransition(t + 1, step, shares[tuple(index)].item()))
        return sorted(likely, key=lambda x: (x.number, -x.probability))

    def contents(self, after: int, least: float) -> list[StackEdge]:
        """What may lie on the stack after so many inputs: see :func:`fairseq_stack.ops.stack_contents`."""
        (edges,) = stack_contents(*(x[None, :after] for x in self.log_weights), window=self.window, least=least)
        return edges

    def as_json(self) -> dict[str, Any]:
        numbers = super().as_json()
        del numbers["actions"]
        return {
            **numbers,
            "log_weights": {name: with_none(x.tolist()) for name, x in self.log_weights._asdict().items()},
            "posterior": {name: with_none(x.tolist()) for name, x in self.posterior._asdict().items()},
            "log_partition": with_none(self.log_partition),
            "runs": [_json_of_run(run) for run in self.runs],
        }


def posterior_actions(posterior: Transitions) -> dict[str, Tensor]:
    """The probabilities that each step pushes, replaces and pops, (n,) each."""
    return {name: x.flatten(1).sum(1) for name, x in zip(OPERATIONS, posterior, strict=True)}


def _json_of_run(run: Run) -> dict[str, Any]:
    return {
        "log_weight": run.log_weight,
        "start": list(run.start),
        "steps": [{**step._asdict(), "source": list(step.source)} for step in run.steps],
        "stacks": [[list(item) for item in stack] for stack in run.stacks()],
    }


def with_none(numbers: Any) -> Any:
    """Numbers in lists, with None, which JSON can write, for those that are not finite."""
    if isinstance(numbers, list):
        return [with_none(x) for x in numbers]
    return numbers if math.isfinite(numbers) else None
