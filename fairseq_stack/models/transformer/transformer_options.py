"""The options of the stack transformers: their declaration, and how they are settled before a model is built.

fairseq reads the types of options at run time: annotations must not be postponed, and optional ones be spelled
``Optional``.
"""

# ruff: noqa: UP045

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Optional

from fairseq.dataclass import ChoiceEnum
from fairseq.models.transformer_lm import TransformerLanguageModelConfig

from fairseq_stack.compat.models import is_from_checkpoint
from fairseq_stack.errors import UserError
from fairseq_stack.kinds import SDPA, Layer, spellings
from fairseq_stack.models.delta_options import DeltaOptions, check_delta_options
from fairseq_stack.models.shared_options import (
    PretrainedOptions,
    StackAttentionOptions,
    VocabularyOptions,
    check_at_least_one,
    check_compact_vocabulary,
    check_kinds,
    check_probabilities,
    flag,
    parse_option,
    settle_stack_options,
)

POSITIONS = ChoiceEnum(["fairseq", "interleaved"])
INITIALIZATIONS = ChoiceEnum(["fairseq", "paper", "one-turn"])
NOT_IN_PLAIN_NETWORKS = (
    "adaptive_input", "base_layers", "cross_self_attention", "decoder_xformers_att_config",
    "encoder_xformers_att_config", "quant_noise_pq", "quant_noise_scalar", "scale_attn", "scale_fc", "scale_heads",
    "scale_resids",
)  # fmt: skip
"""The options of fairseq that change what is computed and that plain networks do not have."""

_SIZES = [
    f"{side}_{size}" for side in ("encoder", "decoder") for size in ("embed_dim", "ffn_embed_dim", "attention_heads")
]


@dataclass
class LayerOptions(StackAttentionOptions, DeltaOptions):
    """The options of layers, and of how the list of them is run, initialised and given positions."""

    stack_positions: POSITIONS = field(  # type: ignore[valid-type]
        default="fairseq",
        metadata={
            "help": "positional encodings: fairseq's, or the paper's ('interleaved'): interleaved sines and cosines, "
            "and positions from 0"
        },
    )
    stack_init: INITIALIZATIONS = field(  # type: ignore[valid-type]
        default="fairseq",
        metadata={
            "help": "initialization: fairseq's; as in Appendix D.2 of DuSell & Chiang 2024 ('paper'); or fairseq's, "
            "but automata push, then pop, and layers without a stack are the identity ('one-turn')"
        },
    )
    stack_init_scale: Optional[float] = field(
        default=None,
        metadata={"help": "with --stack-init paper: other parameters are drawn from [-scale, scale] (default: 0.01)"},
    )
    stack_loops: int = field(
        default=1,
        metadata={"help": "run the list of layers this often, with the same weights; an encoder's list as well"},
    )
    loop_injection: bool = field(
        default=False, metadata={"help": "with --stack-loops: every loop also reads what the first one read"}
    )


@dataclass
class StackOptions(VocabularyOptions, LayerOptions):
    """The options that all stack transformers add to fairseq's; the presets set them as in the paper."""


@dataclass
class StackTransformerLanguageModelConfig(TransformerLanguageModelConfig, StackOptions, PretrainedOptions):
    """fairseq's options for transformer language models and ours."""

    stack_layers: Optional[str] = field(
        default=None,
        metadata={
            "help": f"attention of each layer ({spellings()}), e.g. 2xsdpa,nd-3-3-10,2xsdpa; it also sets the depth"
        },
    )
    decoder_layers: Optional[int] = field(
        default=None, metadata={"help": "number of layers (default: the length of --stack-layers; without it, 6)"}
    )
    decoder_input_dim: Optional[int] = field(
        default=None, metadata={"help": "size of input embeddings (default: --decoder-embed-dim)"}
    )
    decoder_output_dim: Optional[int] = field(
        default=None, metadata={"help": "size of output embeddings (default: --decoder-embed-dim)"}
    )
    no_padding_row: bool = field(
        default=False,
        metadata={
            "help": "with --compact-vocab and --share-decoder-input-output-embed: the table has no row for padding, "
            "which is never read"
        },
    )


def option_defaults() -> dict[str, Any]:
    """The defaults of the options that all stack transformers share."""
    return {name: field.default for name, field in StackOptions.__dataclass_fields__.items() if name != "_name"}


def set_depth(options: Any, name: str, side: str) -> None:
    """Set the depth of a side to the length of its layer list, unless the user has set a depth: see :func:`settle`."""
    depth = f"{side}_layers"
    if getattr(options, name, None) is not None and getattr(options, depth, None) is None:
        setattr(options, depth, len(parse_option(options, name)))


def settle(options: Namespace, model: str, sides: Mapping[str, str]) -> None:
    """Check the options, and set the depths to the lengths of the layer lists.

    Args:
        options: the options.
        model: the name of the model.
        sides: for ``encoder`` and ``decoder``, or one of them, the option that lists its layers.

    Raises:
        UserError: a layer list is wrong, or the depth of a new model is another one; or options cannot be combined.
    """
    check_options(options)
    layers = [layer for side, name in sides.items() for layer in settle_layers(options, name, side, model)]
    settle_stack_options(options, layers)
    check_delta_options(options, layers)


def settle_layers(options: Namespace, name: str, side: str, model: str) -> tuple[Layer, ...]:
    """The layers of a side, the first layer first; without a layer list all are SDPA.

    Raises:
        UserError: the list is wrong, the model cannot have such layers, or the user has set another depth for a new
            model.
    """
    layers, depth = getattr(options, name), f"{side}_layers"
    set_depth(options, name, side)
    if layers is None:
        if getattr(options, depth) is None:
            setattr(options, depth, TransformerLanguageModelConfig.decoder_layers)
        return (Layer(SDPA),) * getattr(options, depth)
    listed = parse_option(options, name)
    check_kinds(name, listed, model)
    if side == "decoder" and getattr(options, "cross_self_attention", False) and listed != (Layer(SDPA),) * len(listed):
        raise UserError(f"--cross-self-attention: expected layers of sdpa, got {flag(name)} {layers}")
    length = len(listed)
    if getattr(options, depth) != length and not is_from_checkpoint():
        raise UserError(
            f"{flag(depth)} {getattr(options, depth)} and {flag(name)} {layers} ({length} layer{'s' * (length > 1)}) "
            f"do not agree; leave {flag(depth)} out, since the layer list sets the depth"
        )
    setattr(options, depth, length)
    return listed


def check_options(options: Namespace) -> None:
    """Raise UserError if options cannot be combined."""
    for name in ("adaptive_softmax_cutoff", "tie_adaptive_weights", "tie_adaptive_proj"):
        if getattr(options, name, None):
            raise UserError(
                f"{flag(name)}: stack transformers have no adaptive softmax; fairseq's loss for it takes a word of "
                "each tail cluster for padding"
            )
    if options.quant_noise_pq:
        raise UserError("--quant-noise-pq: stack attention has no quantization noise")
    check_at_least_one(options, *(name for name in _SIZES if hasattr(options, name)))
    check_probabilities(options, "dropout", "attention_dropout", "activation_dropout")
    if options.stack_positions == "interleaved":
        for name in ("encoder_learned_pos", "decoder_learned_pos"):
            if getattr(options, name, None):
                raise UserError(f"--stack-positions interleaved and {flag(name)} cannot be combined")
    check_loops(options)
    for name in ("encoder_layerdrop", "decoder_layerdrop", "base_layers"):
        if options.stack_loops > 1 and getattr(options, name, None):
            raise UserError(f"--stack-loops and {flag(name)} cannot be combined")
    check_compact_vocabulary(options)
    if not options.compact_vocab:
        return
    for name in ("merge_src_tgt_embed", "base_layers", "encoder_embed_path", "decoder_embed_path", "adaptive_input"):
        if getattr(options, name, None):
            raise UserError(f"--compact-vocab and {flag(name)} cannot be combined")


def check_loops(options: Namespace) -> None:
    """Raise UserError if the layers are to run less than once, or an option of loops has no effect."""
    check_at_least_one(options, "stack_loops")
    if options.loop_injection and options.stack_loops == 1:
        raise UserError("--loop-injection has no effect: expected --stack-loops of at least 2")
