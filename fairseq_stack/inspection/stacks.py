"""What the stacks of a trained model do while it reads a sentence, in numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from fairseq_stack.hub.interface import Hub
from fairseq_stack.inspection.recording import DrivenStack, read_sentence
from fairseq_stack.inspection.sentences import Sentence
from fairseq_stack.inspection.stack_weights import weights_of_automaton
from fairseq_stack.modules import (
    AutomatonStackAttention,
    StratificationStackAttention,
    SuperpositionStackAttention,
    SymbolStackAttention,
)
from fairseq_stack.ops import (
    Run,
    best_runs,
    nondeterministic_stack,
    stack_contents,
    stratification_stack,
    superposition_stack,
    transition_posterior,
)
from fairseq_stack.ops.nondeterministic import Configuration, Operation, StackEdge, Step, Transitions

OPERATIONS: tuple[Operation, ...] = ("push", "replace", "pop")
"""Of an automaton, in the order of the fields of Transitions."""


@dataclass(frozen=True, eq=False)
class InspectedStack:
    """What a stack does. All numbers are for n inputs, in float64.

    Attributes:
        layer: the layer's name in the model, such as ``decoder.layers.2``.
        inputs: what the layer reads, as in :class:`~fairseq_stack.inspection.recording.DrivenStack`.
        weights: row t belongs to the reading after input t, and each column to a pushed vector: the weight that it
            has in the reading, (n, n), or (n, n + 1) where the first column belongs to the bottom of the stack.
        is_automaton: whether it is a nondeterministic stack.
        operation_names: the operations that it has, such as push and pop.
        unit: what the numbers of :meth:`operations` are.
    """

    layer: str
    inputs: tuple[str, ...]
    weights: Tensor
    is_automaton: ClassVar[bool] = False
    operation_names: ClassVar[tuple[str, ...]]
    unit: ClassVar[str] = "probability"

    @property
    def pushed(self) -> tuple[str, ...]:
        """What the columns of the weights stand for."""
        return self.inputs if self.weights.shape[1] == len(self.inputs) else ("bottom", *self.inputs)

    def operations(self) -> Tensor:
        """How much of each operation there is in each step, (n, number of operations)."""
        raise NotImplementedError

    def as_json(self) -> dict[str, Any]:
        """The numbers, as lists."""
        return {"layer": self.layer, "inputs": list(self.inputs), "weights": self.weights.tolist()}


@dataclass(frozen=True, eq=False)
class InspectedSuperposition(InspectedStack):
    """A superposition stack.

    Attributes:
        actions: the probabilities of push, no-op and pop in each step, (n, 3).
    """

    actions: Tensor
    operation_names: ClassVar[tuple[str, ...]] = ("push", "no-op", "pop")

    def operations(self) -> Tensor:
        return self.actions

    def as_json(self) -> dict[str, Any]:
        columns = zip(self.operation_names, self.actions.unbind(1), strict=True)
        return {**super().as_json(), "actions": {name: column.tolist() for name, column in columns}}


@dataclass(frozen=True, eq=False)
class InspectedStratification(InspectedStack):
    """A stratification stack.

    Attributes:
        pop: the strength of the pop in each step, (n,).
        push: the strength of the push, (n,).
        strengths: s_t[i], the strength of the item pushed at input i after input t, (n, n).
    """

    pop: Tensor
    push: Tensor
    strengths: Tensor
    operation_names: ClassVar[tuple[str, ...]] = ("pop", "push")
    unit: ClassVar[str] = "strength"

    def operations(self) -> Tensor:
        return torch.stack([self.pop, self.push], 1)

    def as_json(self) -> dict[str, Any]:
        numbers = {name: getattr(self, name).tolist() for name in ("pop", "push", "strengths")}
        return {**super().as_json(), **numbers}


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
    """A nondeterministic stack, with vectors or without.

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
    operation_names: ClassVar[tuple[str, ...]] = OPERATIONS

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

    def operations(self) -> Tensor:
        """The posterior probabilities that a step pushes, replaces and pops, (n, 3)."""
        return torch.stack([x.flatten(1).sum(1) for x in self.posterior], 1)

    def shares(self) -> list[float]:
        """The share of the weight of all runs that each of the best runs has."""
        return [torch.tensor(run.log_weight - self.log_partition).exp().item() for run in self.runs]

    def likely_transitions(self, least: float) -> list[LikelyTransition]:
        """The transitions with a posterior probability of at least ``least``, by input and then by probability."""
        found = []
        for operation, shares in zip(OPERATIONS, self.posterior, strict=True):
            for index in shares.ge(least).nonzero().tolist():
                t, q, x, r, *y = index
                step = Step(operation, Configuration(q, x), r, y[0] if y else None)
                found.append(LikelyTransition(t + 1, step, shares[tuple(index)].item()))
        return sorted(found, key=lambda x: (x.number, -x.probability))

    def contents(self, after: int, least: float) -> list[StackEdge]:
        """What may lie on the stack after so many inputs: see :func:`fairseq_stack.ops.stack_contents`."""
        (edges,) = stack_contents(*(x[None, :after] for x in self.log_weights), window=self.window, least=least)
        return edges

    def as_json(self) -> dict[str, Any]:
        return {
            **super().as_json(),
            "log_weights": {name: with_none(x.tolist()) for name, x in self.log_weights._asdict().items()},
            "posterior": {name: with_none(x.tolist()) for name, x in self.posterior._asdict().items()},
            "log_partition": with_none(self.log_partition),
            "runs": [_json_of_run(run) for run in self.runs],
        }


def inspect_stacks(
    hub: Hub, sentence: str | Sentence, translation: str | None = None, *, num_runs: int = 1
) -> list[InspectedStack]:
    """What the stacks of a model do while it reads a sentence.

    Args:
        hub: what ``from_pretrained`` returns, with one model.
        sentence: as for :func:`~fairseq_stack.inspection.recording.read_sentence`.
        translation: likewise.
        num_runs: how many of the best runs of each nondeterministic stack are wanted.

    Returns:
        All stacks of this project's kinds; none for a model without stacks.

    Raises:
        UserError: see :func:`~fairseq_stack.inspection.recording.read_sentence`.
    """
    found = [inspected(driven, num_runs) for driven in read_sentence(hub, sentence, translation)]
    return [stack for stack in found if stack is not None]


def inspected(driven: DrivenStack, num_runs: int = 1) -> InspectedStack | None:
    """What a stack does; None if it is not of a kind of this project."""
    if isinstance(driven.stack, AutomatonStackAttention):
        return _automaton(driven, driven.stack, num_runs)
    if isinstance(driven.stack, SuperpositionStackAttention):
        return _superposition(driven, driven.stack)
    if isinstance(driven.stack, StratificationStackAttention):
        return _stratification(driven, driven.stack)
    return None


@torch.no_grad()
def _superposition(driven: DrivenStack, stack: SuperpositionStackAttention) -> InspectedSuperposition:
    actions = stack.actions(driven.inputs).double().softmax(-1)
    any_vectors = actions[None, :, :1]
    _, (weights,) = superposition_stack(actions[None], any_vectors, depth_limit=stack.depth_limit, return_weights=True)
    return InspectedSuperposition(driven.layer, driven.symbols, weights.cpu(), actions.cpu())


@torch.no_grad()
def _stratification(driven: DrivenStack, stack: StratificationStackAttention) -> InspectedStratification:
    pop, push = stack.actions(driven.inputs).double().sigmoid().T
    length = len(pop)
    units = torch.eye(length, dtype=pop.dtype, device=pop.device)[None]
    _, weights = stratification_stack(pop[None], push[None], units, return_weights=True)
    # What is read from a stack of which everything is read.
    everything = 1.0 + length
    strengths = stratification_stack(pop[None], push[None], units, read_strength=everything)
    return InspectedStratification(
        driven.layer, driven.symbols, weights[0].cpu(), pop.cpu(), push.cpu(), strengths[0].cpu()
    )


@torch.no_grad()
def _automaton(driven: DrivenStack, stack: AutomatonStackAttention, num_runs: int) -> InspectedAutomaton:
    inputs = driven.inputs[None]
    weights = weights_of_automaton(stack, inputs)[0]
    transitions = Transitions(*stack.transitions_of_sequence(stack.actions(inputs).double()))
    length = len(driven.inputs)
    window = stack.window if stack.window is not None and stack.window <= length else None
    no_vectors = weights.new_zeros(1, length, 1), weights.new_zeros(1)
    _, log_partition = nondeterministic_stack(*transitions, *no_vectors, return_log_partition=True, window=window)
    posterior = transition_posterior(*transitions, window=window)
    if window is not None and isinstance(stack, SymbolStackAttention) and stack.original_bottom:
        # What the first step pushes replaces a bottom of step 0, which would be forgotten one step too early.
        posterior, log_partition = Transitions(*(x * torch.nan for x in posterior)), log_partition * torch.nan
    finds_runs = num_runs > 0 and window is None and bool(log_partition[0, -1].isfinite())
    runs = tuple(best_runs(*transitions, count=num_runs)[0]) if finds_runs else ()
    return InspectedAutomaton(
        driven.layer,
        driven.symbols,
        weights.cpu(),
        Transitions(*(x[0].cpu() for x in transitions)),
        Transitions(*(x[0].cpu() for x in posterior)),
        log_partition[0, -1].item(),
        window,
        runs,
    )


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
