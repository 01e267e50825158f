"""Differentiable stacks as pure tensor functions, and their states for one step at a time.

Each stack has a folder of its own: ``reference.py`` is the executable specification in the papers' notation, the
other backends are fast, ``state.py`` decodes incrementally.
"""

from fairseq_stack.ops._arguments import computation_dtype
from fairseq_stack.ops.nondeterministic import NondeterministicStackState, nondeterministic_stack
from fairseq_stack.ops.stratification import StratificationStackState, stratification_stack
from fairseq_stack.ops.superposition import SuperpositionStackState, superposition_stack

__all__ = [
    "NondeterministicStackState",
    "StratificationStackState",
    "SuperpositionStackState",
    "computation_dtype",
    "nondeterministic_stack",
    "stratification_stack",
    "superposition_stack",
]
