"""Sublayers: torch modules built on the stacks of :mod:`fairseq_stack.ops`, independent of fairseq."""

from fairseq_stack.modules.positions import InterleavedSinusoidalPositions
from fairseq_stack.modules.stack_attention import (
    NondeterministicStackAttention,
    StackAttention,
    SuperpositionStackAttention,
)

__all__ = [
    "InterleavedSinusoidalPositions",
    "NondeterministicStackAttention",
    "StackAttention",
    "SuperpositionStackAttention",
]
