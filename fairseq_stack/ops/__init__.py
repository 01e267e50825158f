"""Differentiable stacks and queues as pure tensor functions, and their states for one step at a time.

This package needs only torch and imports nothing else of this project. Each stack has a folder of its own:

    superposition/      Eqs. 5-8 of DuSell & Chiang (2024)         stratification/  Hao et al. (2018), Section 2.1
    nondeterministic/   Eqs. 21-29; docs/algorithm.md              queues/, buffers/  the same, Section 2.3
    delta/              the delta rule: an associative memory      pointer/         DeltaStack's stack, by that rule
    recurrent/          an LSTM that drives stacks, all steps      controllers/     a neural stack, all steps
    stack_tape/         parses of Murty et al. (2023), not         depth_scores/    Eq. 6, attention by depth
                        differentiable
    dropout.py          random numbers that are drawn faster

Begin with ``superposition/reference.py``, which is one page: a ``reference.py`` is the paper in its own notation, and
everything else in the folder is tested against it. ``__init__.py`` has the public function, which checks its arguments
and chooses a backend; ``pytorch.py`` is vectorised, ``native.py`` calls the C of ``_native/src``, ``gpu.py`` the
kernels of ``_triton/``, and ``state.py`` takes one step at a time for decoding.

``backend="auto"`` is the first of ``BACKENDS`` without an obstacle (``_backends.py``): on CPUs the compiled kernels,
where a stack has them and they were built, otherwise PyTorch; on GPUs Triton, where it works, otherwise PyTorch.

What the folders share: ``_arguments.py`` (checks), ``_operators.py`` and ``_transforms.py`` (hand-written gradients for
autograd and torch.func), ``_undefined.py`` (NaN that stays in its place), ``_item_state.py`` (steps of items with
strengths).

To change an equation, change ``reference.py`` first. The tests of every stack (``tests/ops/test_every_stack.py``) then
name each backend and each state that differs from it.
"""

import torch

from fairseq_stack.ops import buffers, delta, nondeterministic, pointer, queues, stratification, superposition
from fairseq_stack.ops._arguments import computation_dtype
from fairseq_stack.ops._backends import Backend, Op, automatic_backend, loop_is_compiled
from fairseq_stack.ops._native import buffers as kept_memory
from fairseq_stack.ops._states import step_through
from fairseq_stack.ops.buffers import InputBufferState, input_buffer, output_buffer
from fairseq_stack.ops.controllers import ControllerSetup, neural_stack
from fairseq_stack.ops.delta import DeltaRuleState, delta_rule
from fairseq_stack.ops.dropout import draws_factors, dropout
from fairseq_stack.ops.nondeterministic import (
    NondeterministicStackState,
    Run,
    best_runs,
    nondeterministic_stack,
    stack_contents,
    transition_posterior,
)
from fairseq_stack.ops.pointer import PointerStackState, pointer_stack
from fairseq_stack.ops.queues import QueueState, queue
from fairseq_stack.ops.recurrent import (
    ControlledAutomaton,
    ControlledStack,
    ControlledStratification,
    ControlledSuperposition,
    stack_lstm,
)
from fairseq_stack.ops.stack_tape import (
    StackTapeState,
    legal_attachments,
    roots_of_sentences,
    stack_tape,
)
from fairseq_stack.ops.stratification import StratificationStackState, stratification_stack
from fairseq_stack.ops.superposition import SuperpositionStackState, superposition_stack

__all__ = [
    "OPS",
    "Backend",
    "ControlledAutomaton",
    "ControlledStack",
    "ControlledStratification",
    "ControlledSuperposition",
    "ControllerSetup",
    "DeltaRuleState",
    "InputBufferState",
    "NondeterministicStackState",
    "Op",
    "PointerStackState",
    "QueueState",
    "Run",
    "StackTapeState",
    "StratificationStackState",
    "SuperpositionStackState",
    "automatic_backend",
    "automatic_backends",
    "best_runs",
    "computation_dtype",
    "delta_rule",
    "draws_factors",
    "dropout",
    "input_buffer",
    "legal_attachments",
    "loop_is_compiled",
    "neural_stack",
    "nondeterministic_stack",
    "output_buffer",
    "pointer_stack",
    "queue",
    "release_buffers",
    "roots_of_sentences",
    "stack_contents",
    "stack_lstm",
    "stack_tape",
    "step_through",
    "stratification_stack",
    "superposition_stack",
    "transition_posterior",
]


OPS = (
    superposition.OP,
    nondeterministic.OP,
    stratification.OP,
    queues.OP,
    buffers.INPUT,
    buffers.OUTPUT,
    delta.OP,
    pointer.OP,
)
"""All stacks, queues and buffers."""


def automatic_backends(device: torch.device) -> dict[str, str]:
    """The backend that ``backend="auto"`` stands for on this device, by the name of the op."""
    return {op.name: automatic_backend(op.backends, device).name for op in OPS}


def release_buffers() -> None:
    """Return the memory that the compiled kernels keep between calls to the system."""
    kept_memory.release()
