"""Differentiable stacks and queues as pure tensor functions, and their states for one step at a time.

Each stack has its own folder: ``reference.py`` is the executable specification in the papers' notation, the
other backends are fast, ``state.py`` decodes incrementally. The stack tape is not differentiable: it is a parse.
"""

import torch

from fairseq_stack.ops import buffers, nondeterministic, queues, stratification, superposition
from fairseq_stack.ops._arguments import computation_dtype
from fairseq_stack.ops._backends import Backend, Op, automatic_backend
from fairseq_stack.ops._native import buffers as kept_memory
from fairseq_stack.ops.buffers import InputBufferState, input_buffer, output_buffer
from fairseq_stack.ops.controllers import ControllerSetup, neural_stack, neural_stack_is_compiled
from fairseq_stack.ops.nondeterministic import (
    NondeterministicStackState,
    Run,
    best_runs,
    nondeterministic_stack,
    stack_contents,
    transition_posterior,
)
from fairseq_stack.ops.queues import QueueState, queue
from fairseq_stack.ops.recurrent import (
    ControlledAutomaton,
    ControlledStack,
    ControlledSuperposition,
    stack_lstm,
    stack_lstm_is_compiled,
)
from fairseq_stack.ops.stack_tape import (
    StackTapeState,
    legal_attachments,
    oracle_attachments,
    stack_tape,
)
from fairseq_stack.ops.stratification import StratificationStackState, stratification_stack
from fairseq_stack.ops.superposition import SuperpositionStackState, superposition_stack

__all__ = [
    "OPS",
    "Backend",
    "ControlledAutomaton",
    "ControlledStack",
    "ControlledSuperposition",
    "ControllerSetup",
    "InputBufferState",
    "NondeterministicStackState",
    "Op",
    "QueueState",
    "Run",
    "StackTapeState",
    "StratificationStackState",
    "SuperpositionStackState",
    "automatic_backend",
    "automatic_backends",
    "best_runs",
    "computation_dtype",
    "input_buffer",
    "legal_attachments",
    "neural_stack",
    "neural_stack_is_compiled",
    "nondeterministic_stack",
    "oracle_attachments",
    "output_buffer",
    "queue",
    "release_buffers",
    "stack_contents",
    "stack_lstm",
    "stack_lstm_is_compiled",
    "stack_tape",
    "stratification_stack",
    "superposition_stack",
    "transition_posterior",
]


OPS = (superposition.OP, nondeterministic.OP, stratification.OP, queues.OP, buffers.INPUT, buffers.OUTPUT)
"""All stacks, queues and buffers."""


def automatic_backends(device: torch.device) -> dict[str, str]:
    """The backend that ``backend="auto"`` stands for on this device, by the name of the op."""
    return {op.name: automatic_backend(op.backends, device).name for op in OPS}


def release_buffers() -> None:
    """Return the memory that the compiled kernels keep between calls to the system."""
    kept_memory.release()
