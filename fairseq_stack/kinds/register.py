"""The register of the kinds of layers. Layer lists, models, checks, measurements and tables iterate over it."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

from fairseq_stack.kinds.kind import WINDOW, Kind, Size
from fairseq_stack.modules import (
    DeltaAttention,
    DeltaStackAttention,
    NondeterministicStackAttention,
    StratificationStackAttention,
    SuperpositionStackAttention,
    SymbolStackAttention,
)
from fairseq_stack.ops import delta, nondeterministic, pointer, stratification, superposition

_VECTOR = Size("M", "size of the stack vectors")
_AUTOMATON = (Size("Q", "states"), Size("S", "stack symbols"))
_VALUE_ACTIVATION = {"value_activation": "stack_value_activation"}
_DEPTH_LIMIT = {"depth_limit": "stack_depth_limit"}
_BIAS = {"bias": "stack_bias"}
_NORMALIZE = {"normalize_transitions": "normalize_transitions"}


def _num_transitions(num_states: int, num_symbols: int) -> int:
    num_tops = num_states * num_symbols
    return num_tops * (2 * num_tops + num_states)


SDPA = Kind(
    name="sdpa",
    title="scaled dot-product attention",
    sizes=(),
    num_weights=lambda model_size: 4 * model_size**2,
    cost="n^2 d",
)
PUSHDOWN = Kind(
    name="pushdown",
    title="scaled dot-product attention with a stack tape",
    sizes=(),
    num_weights=lambda model_size: 4 * model_size**2,
    cost="n^2 d",
    needs_tape=True,
    models=("pushdown_transformer_lm",),
)
SUPERPOSITION = Kind(
    name="sup",
    title="superposition stack attention",
    sizes=(_VECTOR,),
    num_weights=lambda model_size, size: model_size * (3 + 2 * size),
    cost="n^2 M",
    build=SuperpositionStackAttention,
    options={**_VALUE_ACTIVATION, **_DEPTH_LIMIT},
    controller_options={"push_inputs": "push_hidden_state", **_DEPTH_LIMIT},
    op=superposition.OP,
    examples=((5,),),
)
NONDETERMINISTIC = Kind(
    name="nd",
    title="nondeterministic stack attention",
    sizes=(*_AUTOMATON, _VECTOR),
    num_weights=lambda model_size, num_states, num_symbols, size: (
        model_size * (_num_transitions(num_states, num_symbols) + size + num_states * num_symbols * size)
    ),
    cost="n^3 Q^3 S^2",
    build=NondeterministicStackAttention,
    options={**_VALUE_ACTIVATION, **_BIAS},
    controller_options={**_NORMALIZE, "bottom_vector": "bottom_vector"},
    limited_memory=True,
    op=nondeterministic.OP,
    examples=((2, 3, 5), (1, 2, 3)),
)
SYMBOLS = Kind(
    name="ns",
    title="nondeterministic stack attention without vectors",
    sizes=_AUTOMATON,
    num_weights=lambda model_size, num_states, num_symbols: (
        model_size * (_num_transitions(num_states, num_symbols) + num_states * num_symbols)
    ),
    cost="n^3 Q^3 S^2",
    build=SymbolStackAttention,
    options=_BIAS,
    controller_options={
        **_NORMALIZE,
        "states_in_reading": "states_in_reading",
        "read_log_weights": "read_log_weights",
        "original_bottom": "original_bottom",
    },
    limited_memory=True,
    op=nondeterministic.OP,
    examples=((2, 3),),
)
STRATIFICATION = Kind(
    name="strat",
    title="stratification stack attention",
    sizes=(_VECTOR,),
    num_weights=lambda model_size, size: model_size * (2 + 2 * size),
    cost="n^2 M",
    build=StratificationStackAttention,
    options=_VALUE_ACTIVATION,
    controller_settings={"value_activation": "tanh"},
    op=stratification.OP,
    examples=((5,),),
)

_HEADS = (Size("H", "heads"), Size("K", "size of a head's keys"), Size("V", "size of a head's values"))
_DELTA = {"beta_scale": "delta_beta_scale", "convolution": "delta_convolution", "output_gate": "delta_output_gate"}
_CONVOLUTION = 4


def _delta_weights(model_size: int, heads: int, key: int, value: int, updates: int = 1, more: int = 0) -> int:
    """Of attention by the delta rule with its usual convolutions, and ``more`` rows of W for each head."""
    written = updates * (key + value)
    rows = key + written + updates + value + more
    return heads * (model_size * rows + _CONVOLUTION * (key + written))


DELTA = Kind(
    name="delta",
    title="attention by the delta rule (DeltaNet)",
    sizes=_HEADS,
    num_weights=_delta_weights,
    cost="n H K V",
    build=DeltaAttention,
    recurrent=False,
    options=_DELTA,
    op=delta.OP,
    models=("stack_transformer_lm", "stack_transformer", "stack_tagger_transformer"),
    examples=((2, 3, 2),),
)
GATED_DELTA = replace(
    DELTA,
    name="gdelta",
    title="attention by the delta rule with decay (gated DeltaNet)",
    num_weights=partial(_delta_weights, more=1),
    build=partial(DeltaAttention, decay=True),
)
DELTA_PRODUCT = replace(
    DELTA,
    name="product",
    title="attention by several delta rules per step (DeltaProduct)",
    sizes=(*_HEADS, Size("U", "updates per step")),
    num_weights=_delta_weights,
    cost="n H U K V",
    options={**_DELTA, "decay": "product_decay"},
    examples=((2, 3, 2, 2),),
)
DELTA_STACK = replace(
    DELTA,
    name="deltastack",
    title="attention by the delta rule and a stack (DeltaStack)",
    sizes=(*_HEADS, Size("C", "cells of a head's stack")),
    num_weights=lambda model_size, heads, key, value, cells: _delta_weights(model_size, heads, key, value, more=3),
    cost="n H (K + C) V",
    build=DeltaStackAttention,
    options={
        **_DELTA,
        "reading": "deltastack_reading",
        "kappa": "deltastack_kappa",
        "frozen_kappa": "deltastack_frozen_kappa",
        "clamped": "deltastack_clamped",
        "kept_scale": "deltastack_kept_scale",
        "action_gain": "deltastack_action_gain",
    },
    op=pointer.OP,
    op_options=lambda heads, key, value, cells: {"cells": cells},
    examples=((2, 3, 2, 4),),
)

_KINDS: dict[str, Kind] = {}


def register(kind: Kind) -> None:
    """Let layer lists name a kind.

    Raises:
        ValueError: its name is taken or is not in lower-case letters, it has a wrong number of examples of sizes,
            or another kind uses a letter of its sizes for something else.
    """
    if kind.name in _KINDS:
        raise ValueError(f"another kind of layer already has the name {kind.name!r}")
    if not re.fullmatch("[a-z]+", kind.name):
        raise ValueError(f"the name of a kind of layer: expected lowercase letters, got {kind.name!r}")
    if not kind.examples or any(len(sizes) != len(kind.sizes) for sizes in kind.examples):
        raise ValueError(f"{kind.name}: expected examples of {len(kind.sizes)} sizes, got {kind.examples}")
    taken = [WINDOW, *(size for known in _KINDS.values() for size in known.sizes)]
    meanings = {size.letter: size.meaning for size in taken}
    for size in kind.sizes:
        if meanings.get(size.letter, size.meaning) != size.meaning:
            raise ValueError(f"{kind.name}: the letter {size.letter} already means {meanings[size.letter]}")
    _KINDS[kind.name] = kind


def kinds() -> tuple[Kind, ...]:
    """All kinds, in the order in which they were registered."""
    return tuple(_KINDS.values())


for _kind in (
    *(SDPA, PUSHDOWN, SUPERPOSITION, NONDETERMINISTIC, SYMBOLS, STRATIFICATION),
    *(DELTA, GATED_DELTA, DELTA_PRODUCT, DELTA_STACK),
):
    register(_kind)
