"""The options of taggers, which have the names that they have in language models with the same layers.

fairseq reads the types of options at run time: annotations must not be postponed.
"""

from argparse import Namespace
from dataclasses import dataclass, field

from fairseq.dataclass import ChoiceEnum

from fairseq_stack.errors import UserError
from fairseq_stack.kinds import spellings
from fairseq_stack.models.delta_options import check_delta_options
from fairseq_stack.models.lstm.lstm_options import settle_stacks
from fairseq_stack.models.shared_options import (
    check_at_least_one,
    check_kinds,
    check_probabilities,
    flag,
    initial_scale,
    parse_option,
    settle_stack_options,
    shared_with,
)
from fairseq_stack.models.transformer.transformer_options import LayerOptions, check_loops
from fairseq_stack.networks import LSTMOptions, TransformerOptions
from fairseq_stack.networks.layers import ACTIVATIONS

TRANSFORMER, LSTM = "stack_tagger_transformer", "stack_tagger_lstm"
ACTIVATION_NAMES = ChoiceEnum(list(ACTIVATIONS))


@dataclass
class TransformerTaggerConfig(LayerOptions):
    """The options of a transformer with an output at each position."""

    stack_layers: str = field(
        default="2xsdpa", metadata={"help": f"attention of each layer ({spellings()}), e.g. 2xsdpa,nd-3-3-10,2xsdpa"}
    )
    causal: bool = field(
        default=False,
        metadata={"help": "outputs depend only on the input up to their positions (default: on the whole input)"},
    )
    decoder_embed_dim: int = field(default=64, metadata={"help": "size of the layers' inputs and outputs"})
    decoder_ffn_embed_dim: int = field(default=256, metadata={"help": "size of the feed-forward networks"})
    decoder_attention_heads: int = field(default=4, metadata={"help": "how many heads the attention of sdpa has"})
    activation_fn: ACTIVATION_NAMES = field(  # type: ignore[valid-type]
        default="relu", metadata={"help": "activation of the feed-forward networks"}
    )
    dropout: float = field(default=0.0, metadata={"help": "dropout probability of embeddings and sublayers"})
    attention_dropout: float = field(default=0.0, metadata={"help": "dropout probability of the weights of sdpa"})
    activation_dropout: float = field(default=0.0, metadata={"help": "dropout probability in feed-forward networks"})
    no_token_positional_embeddings: bool = field(default=False, metadata={"help": "have no positional encodings"})
    max_target_positions: int = field(default=4096, metadata={"help": "how many symbols the model can read"})


def transformer_options(options: Namespace) -> TransformerOptions:
    """The options of the network of a transformer.

    Raises:
        UserError: one is out of range, or they cannot be combined.
    """
    check_at_least_one(
        options, "decoder_embed_dim", "decoder_ffn_embed_dim", "decoder_attention_heads", "max_target_positions"
    )
    check_probabilities(options, "dropout", "attention_dropout", "activation_dropout")
    check_loops(options)
    layers = parse_option(options, "stack_layers")
    check_kinds("stack_layers", layers, TRANSFORMER)
    settle_stack_options(options, layers)
    check_delta_options(options, layers)
    size, heads = options.decoder_embed_dim, options.decoder_attention_heads
    if any(layer.kind.build is None for layer in layers) and size % heads:
        raise UserError(f"{flag('decoder_attention_heads')}: expected a divisor of {size}, the size, got {heads}")
    options.stack_init_scale = initial_scale(options, TransformerOptions.stack_init_scale)
    return TransformerOptions(**shared_with(TransformerOptions, options))


def lstm_options(options: Namespace) -> LSTMOptions:
    """The options of the network of an LSTM.

    Raises:
        UserError: as :func:`transformer_options`.
    """
    settle_stacks(options, LSTM)
    options.stack_init_scale = initial_scale(options, LSTMOptions.stack_init_scale)
    if options.stack_init == "fairseq":
        options.stack_init = "uniform"  # as fairseq's LSTM
    return LSTMOptions(**shared_with(LSTMOptions, options))
