"""What a supervised nondeterministic stack learns to do: which transitions that allows, and how probable they are."""

from __future__ import annotations

from enum import IntEnum

import torch
from torch import Tensor

from fairseq_stack.modules.nondeterministic import AutomatonStackAttention
from fairseq_stack.modules.stack_attention import at_least_float32
from fairseq_stack.ops import best_runs
from fairseq_stack.ops.nondeterministic import Step, Transitions, allowed_log_probability


class StackOperation(IntEnum):
    """A set of transitions, one of which a step is to take.

    The numbers from 0 on are those of ``TreeOperation`` in ``fairseq_stack_preprocess.trees.operations``: of a tree,
    the first and the last token replace the top, and the state after a replacement tells descents from climbs.
    """

    ANY = -1
    REPLACE = 0
    PUSH = 1
    POP = 2
    REPLACE_TO_FIRST_STATE = 3
    REPLACE_TO_OTHER_STATE = 4


def allowed_transitions(operations: Tensor, num_states: int) -> Transitions:
    """Whether transitions are in the sets of a :class:`StackOperation` for each step.

    Args:
        operations: (B, n), integers.
        num_states: |Q|.

    Returns:
        Booleans of shapes that can be broadcast to (B, n, Q, S, Q, S), twice, and (B, n, Q, S, Q).
    """
    steps = operations[..., None, None, None]
    is_first = torch.arange(num_states, device=operations.device) == 0
    is_any = steps == StackOperation.ANY
    to_state = torch.where(
        is_first, steps == StackOperation.REPLACE_TO_FIRST_STATE, steps == StackOperation.REPLACE_TO_OTHER_STATE
    )
    return Transitions(
        push=(is_any | (steps == StackOperation.PUSH))[..., None],
        replace=(is_any | (steps == StackOperation.REPLACE) | to_state)[..., None],
        pop=is_any | (steps == StackOperation.POP),
    )


def operation_log_probability(stack: AutomatonStackAttention, inputs: Tensor, operations: Tensor) -> Tensor:
    """log p(the first t steps take these operations) among all runs over t inputs, (B, n), in float64.

    Args:
        stack: with unlimited memory, and two states at least if there are replacements to another state.
        inputs: (B, n, d_model).
        operations: a :class:`StackOperation` for each input, (B, n).

    Raises:
        ValueError: the stack has limited memory, or not enough states.
    """
    require_operations(stack)
    transitions = stack.transitions_of_sequence(at_least_float32(stack.actions(inputs)))
    return allowed_log_probability(*transitions, allowed=allowed_transitions(operations, stack.num_states))


def require_operations(stack: AutomatonStackAttention) -> None:
    """Raise ValueError if the stack cannot take all operations, for limited memory or want of states."""
    if stack.window is not None:
        raise ValueError(f"expected a stack with unlimited memory, got a window of {stack.window}")
    if stack.num_states < 2:
        raise ValueError("expected a stack of at least two states, which tell two kinds of replacements apart, got one")


@torch.no_grad()
def best_operations(stack: AutomatonStackAttention, inputs: Tensor, operations: Tensor) -> list[StackOperation]:
    """What the best run does with each input, among runs that take the given operations.

    Args:
        stack: as for :func:`operation_log_probability`.
        inputs: of one sequence, (n, d_model).
        operations: (n,).

    Raises:
        ValueError: as for :func:`operation_log_probability`.
    """
    require_operations(stack)
    transitions = stack.transitions_of_sequence(at_least_float32(stack.actions(inputs[None])))
    allowed = allowed_transitions(operations[None], stack.num_states)
    kept = [x.double().masked_fill(~mask, -torch.inf) for x, mask in zip(transitions, allowed, strict=True)]
    (run,) = best_runs(*kept)[0]
    return [_operation(step) for step in run.steps]


def _operation(step: Step) -> StackOperation:
    if step.operation == "replace":
        return StackOperation.REPLACE_TO_OTHER_STATE if step.state else StackOperation.REPLACE_TO_FIRST_STATE
    return StackOperation.PUSH if step.operation == "push" else StackOperation.POP
