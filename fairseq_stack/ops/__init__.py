"""Differentiable stacks as pure tensor functions, and their states for one step at a time.

Each stack has a folder of its own: ``reference.py`` is the executable specification in the papers' notation, the
other backends are fast, ``state.py`` decodes incrementally.
"""

import torch

from fairseq_stack.ops import nondeterministic, stratification, superposition
from fairseq_stack.ops._arguments import computation_dtype
from fairseq_stack.ops._backends import automatic_backend
from fairseq_stack.ops._native import buffers
from fairseq_stack.ops.nondeterministic import NondeterministicStackState, nondeterministic_stack
from fairseq_stack.ops.stratification import StratificationStackState, stratification_stack
from fairseq_stack.ops.superposition import SuperpositionStackState, superposition_stack

__all__ = [
    "NondeterministicStackState",
    "StratificationStackState",
    "SuperpositionStackState",
    "automatic_backends",
    "computation_dtype",
    "nondeterministic_stack",
    "release_buffers",
    "stratification_stack",
    "superposition_stack",
]


def automatic_backends(device: torch.device) -> dict[str, str]:
    """The backend that ``backend="auto"`` stands for on this device, by the name of the op."""
    return {
        f"{stack.__name__.rpartition('.')[2]}_stack": automatic_backend(stack.BACKENDS, device)
        for stack in (superposition, nondeterministic, stratification)
    }


def release_buffers() -> None:
    """Give the memory that the compiled kernels keep from call to call back to the system."""
    buffers.release()
