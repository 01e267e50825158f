"""The options of the syntactic language model: their declaration, and how they are settled before a model is built.

fairseq reads the types of options at run time: annotations must not be postponed, and optional ones be spelled
``Optional``.
"""

# ruff: noqa: UP045

from argparse import Namespace
from dataclasses import dataclass, field
from typing import Optional

from fairseq.dataclass import ChoiceEnum
from omegaconf import II

from fairseq_stack.errors import UserError
from fairseq_stack.kinds import Layer, spellings
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
from fairseq_stack.modules.pushdown_attention import PARAMETRIZATIONS

MODEL = "pushdown_transformer_lm"
PARAMETRIZATION_CHOICES = ChoiceEnum(list(PARAMETRIZATIONS))
ACTIVATIONS = ChoiceEnum(["relu", "gelu", "gelu_accurate"])


@dataclass
class PushdownLanguageModelConfig(VocabularyOptions, StackAttentionOptions, PretrainedOptions):
    """The options of a Transformer that predicts words and attachments; the presets set them as in the paper."""

    stack_layers: str = field(
        default="6xpushdown",
        metadata={"help": f"attention of each layer ({spellings()}), e.g. 6xsdpa,6xpushdown; it also sets the depth"},
    )
    decoder_embed_dim: int = field(default=128, metadata={"help": "size of embeddings and layers"})
    decoder_ffn_embed_dim: int = field(default=512, metadata={"help": "size of the feed-forward layers"})
    decoder_attention_heads: int = field(default=8, metadata={"help": "heads of sdpa and pushdown layers"})
    decoder_normalize_before: bool = field(
        default=False, metadata={"help": "normalize layers before attention and the feed-forward network, not after"}
    )
    decoder_learned_pos: bool = field(
        default=False, metadata={"help": "add learned positions to embeddings (default: distances alone, or none)"}
    )
    activation_fn: ACTIVATIONS = field(  # type: ignore[valid-type]
        default="relu",
        metadata={"help": "activation of the feed-forward layers; gelu_accurate is GPT-2's, by the tanh"},
    )
    no_scale_embedding: bool = field(
        default=False, metadata={"help": "do not multiply input embeddings by the root of their size"}
    )
    dropout: float = field(
        default=0.1, metadata={"help": "dropout probability of embeddings, of sublayers and in the attachment head"}
    )
    attention_dropout: float = field(default=0.1, metadata={"help": "dropout probability of attention weights"})
    pushdown_parametrization: PARAMETRIZATION_CHOICES = field(  # type: ignore[valid-type]
        default="released",
        metadata={
            "help": "how depths enter attention and the attachment head: by Eqs. 6 and 5 of Murty et al. 2023 "
            "('equations'), as in Figs. 7 and 8 ('figures'), or as in the authors' code, which adds distances"
        },
    )
    pushdown_depths: int = field(
        default=50,
        metadata={
            "help": "size of the tables of depths; larger depths become the last, so with 2 a layer sees only whether "
            "a word has been reduced"
        },
    )
    zero_depths: bool = field(
        default=False,
        metadata={
            "help": "the tables of depths of layers begin at 0, so that layers attend at first as without a tape"
        },
    )
    no_depths_in_head: bool = field(default=False, metadata={"help": "the attachment head sees no depths"})
    attachment_size: Optional[int] = field(
        default=None, metadata={"help": "size of the attachment head (default: 2 --decoder-embed-dim)"}
    )
    attachment_depth_size: Optional[int] = field(
        default=None,
        metadata={"help": "size of the attachment head's embeddings of depths (default: --decoder-embed-dim)"},
    )
    tokens_per_sample: int = II("task.tokens_per_sample")
    max_target_positions: Optional[int] = II("task.max_target_positions")


def settle(options: Namespace) -> tuple[Layer, ...]:
    """Fill in the options whose defaults depend on others, and check all options.

    Returns:
        The layers.

    Raises:
        UserError: an option is wrong, or options cannot be combined.
    """
    layers = parse_option(options, "stack_layers")
    check_kinds("stack_layers", layers, MODEL)
    settle_stack_options(options, layers)
    check_compact_vocabulary(options)
    size, heads = options.decoder_embed_dim, options.decoder_attention_heads
    of_head = ("attachment_size", "attachment_depth_size")
    check_at_least_one(
        options, "decoder_embed_dim", "decoder_ffn_embed_dim", "decoder_attention_heads", "pushdown_depths", *of_head
    )
    if size % heads:
        raise UserError(f"--decoder-embed-dim: expected a multiple of --decoder-attention-heads {heads}, got {size}")
    check_probabilities(options, "dropout", "attention_dropout")
    if getattr(options, "zero_depths", False) and not any(layer.kind.needs_tape for layer in layers):
        raise UserError(f"--zero-depths has no effect: expected pushdown in --stack-layers {options.stack_layers}")
    if options.pushdown_parametrization == "equations":
        for name in of_head:
            if getattr(options, name) is not None:
                raise UserError(f"{flag(name)} and --pushdown-parametrization equations cannot be combined")
    if options.max_target_positions is None:
        options.max_target_positions = options.tokens_per_sample
    return layers
