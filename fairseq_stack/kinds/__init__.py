"""The kinds of layers: a record for each, the register of all, and the layer lists that name them."""

from fairseq_stack.kinds.kind import Kind, Layer, Size
from fairseq_stack.kinds.layer_list import grammar, grammar_of_stacks, parse_layer_list, parse_stacks, spellings
from fairseq_stack.kinds.register import (
    NONDETERMINISTIC,
    PUSHDOWN,
    SDPA,
    STRATIFICATION,
    SUPERPOSITION,
    SYMBOLS,
    kinds,
    register,
)

__all__ = [
    "NONDETERMINISTIC",
    "PUSHDOWN",
    "SDPA",
    "STRATIFICATION",
    "SUPERPOSITION",
    "SYMBOLS",
    "Kind",
    "Layer",
    "Size",
    "grammar",
    "grammar_of_stacks",
    "kinds",
    "parse_layer_list",
    "parse_stacks",
    "register",
    "spellings",
]
