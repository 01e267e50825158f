"""The register of the kinds of layers. Layer lists, models, checks, measurements and tables iterate over it."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

from fairseq_stack.kinds.kind import Kind, Size
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


SDPA = Kind(
    name="sdpa",
    title="scaled dot-product attention",
    sizes=(),
)
PUSHDOWN = Kind(
    name="pushdown",
    title="scaled dot-product attention with a stack tape",
    sizes=(),
    needs_tape=True,
    models=("pushdown_transformer_lm",),
)
SUPERPOSITION = Kind(
    name="sup",
    title="superposition stack attention",
    sizes=(_VECTOR,),
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
    build=StratificationStackAttention,
    options=_VALUE_ACTIVATION,
    controller_settings={"value_activation": "tanh"},
    op=stratification.OP,
    examples=((5,),),
)

_HEADS = (Size("H", "heads"), Size("K", "size of a head's keys"), Size("V", "size of a head's values"))
_DELTA = {"beta_scale": "delta_beta_scale", "convolution": "delta_convolution", "output_gate": "delta_output_gate"}

DELTA = Kind(
    name="delta",
    title="attention by the delta rule (DeltaNet)",
    sizes=_HEADS,
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
    build=partial(DeltaAttention, decay=True),
)
DELTA_PRODUCT = replace(
    DELTA,
    name="product",
    title="attention by several delta rules per step (DeltaProduct)",
    sizes=(*_HEADS, Size("U", "updates per step")),
    options={**_DELTA, "decay": "product_decay"},
    examples=((2, 3, 2, 2),),
)
DELTA_STACK = replace(
    DELTA,
    name="deltastack",
    title="attention by the delta rule and a stack (DeltaStack)",
    sizes=(*_HEADS, Size("C", "cells of a head's stack")),
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
        ValueError: its name is taken, or not of lower-case letters alone, as layer lists need it.
    """
    if not re.fullmatch("[a-z]+", kind.name):
        raise ValueError(f"the name of a kind of layer: expected lower-case letters, got {kind.name!r}")
    if kind.name in _KINDS:
        raise ValueError(f"another kind of layer already has the name {kind.name!r}")
    _KINDS[kind.name] = kind


def kinds() -> tuple[Kind, ...]:
    """All kinds, in the order in which they were registered."""
    return tuple(_KINDS.values())


for _kind in (
    *(SDPA, PUSHDOWN, SUPERPOSITION, NONDETERMINISTIC, SYMBOLS, STRATIFICATION),
    *(DELTA, GATED_DELTA, DELTA_PRODUCT, DELTA_STACK),
):
    register(_kind)
