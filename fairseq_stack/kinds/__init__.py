"""The kinds of layers: a record for each, the register of all, and the layer lists that name them.

Begin with :class:`.kind.Kind`, which is all that the rest of the project knows about a kind: models build its sublayer,
layer lists (:mod:`.layer_list`) and tables spell it, ``fairseq-stack doctor`` and the benchmark take its op. What only
its sublayer can know, how it is initialised, inspected and measured, are methods of
:class:`fairseq_stack.modules.StatefulAttention`. :mod:`.register` has our kinds, and takes kinds of users' packages:
whatever iterates over :func:`.register.kinds` also finds them.

It imports torch, ``ops``, ``modules`` and ``errors``.
"""

from fairseq_stack.kinds.kind import Kind, Layer, Size
from fairseq_stack.kinds.layer_list import parse_layer_list, parse_stacks, spellings
from fairseq_stack.kinds.register import (
    DELTA_STACK,
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
    "DELTA_STACK",
    "NONDETERMINISTIC",
    "PUSHDOWN",
    "SDPA",
    "STRATIFICATION",
    "SUPERPOSITION",
    "SYMBOLS",
    "Kind",
    "Layer",
    "Size",
    "kinds",
    "parse_layer_list",
    "parse_stacks",
    "register",
    "spellings",
]
