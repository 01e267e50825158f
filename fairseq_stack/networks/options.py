"""The options of the networks: named as in fairseq, with values that JSON can hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from fairseq_stack.errors import UserError
from fairseq_stack.kinds import parse_stacks
from fairseq_stack.modules.stack_lstm import NUM_GATES


@dataclass(frozen=True)
class DeltaOptions:
    """The options of layers of the delta rule: see :class:`fairseq_stack.modules.DeltaAttention`, and of those named
    after it :class:`fairseq_stack.modules.DeltaStackAttention`.
    """

    delta_beta_scale: float = 2.0
    delta_convolution: int = 4
    delta_output_gate: bool = False
    product_decay: bool = False
    deltastack_reading: str = "previous"
    deltastack_kappa: float = 2.0
    deltastack_frozen_kappa: bool = False
    deltastack_clamped: bool = False
    deltastack_kept_scale: bool = False
    deltastack_action_gain: float = 1.0


@dataclass(frozen=True)
class TransformerOptions(DeltaOptions):
    """The options of transformers; a language model has a decoder only, and ignores the encoder's.

    Attributes:
        stack_layers: the layer list of the decoder.
        stack_encoder_layers: the layer list of the encoder.
        decoder_embed_dim, encoder_embed_dim: d_model.
        decoder_input_dim, decoder_output_dim: the sizes of the embeddings and of what the output layer reads (default:
            d_model).
        decoder_ffn_embed_dim, encoder_ffn_embed_dim: the sizes of the hidden layers of feed-forward networks.
        decoder_attention_heads, encoder_attention_heads: how many heads SDPA layers have, and attention to the
            encoder.
        decoder_normalize_before, encoder_normalize_before: whether layer normalisation comes first.
        no_decoder_final_norm: with it first, leave out the decoder's final one.
        decoder_learned_pos, encoder_learned_pos: learn the positional encodings.
        stack_positions: other positional encodings: ``"fairseq"`` or ``"interleaved"``, as in the paper.
        no_token_positional_embeddings: have no positional encodings.
        max_target_positions, max_source_positions: how many symbols the decoder and the encoder can read.
        no_scale_embedding: do not multiply embeddings by the root of d_model.
        layernorm_embedding: normalise the sum of embeddings and positional encodings.
        activation_fn: of feed-forward networks: see :data:`fairseq_stack.networks.layers.ACTIVATIONS`.
        no_cross_attention: the decoder does not attend to the encoder.
        share_decoder_input_output_embed: the output layer has the table of the decoder's embeddings.
        share_all_embeddings: so has the encoder.
        output_bias: the output layer has a bias.
        compact_vocab: the output layer has a buffer ``possible`` that says which symbols can occur.
        stack_value_activation: see :class:`fairseq_stack.modules.StackAttention`.
        stack_depth_limit: see :class:`fairseq_stack.modules.SuperpositionStackAttention`.
        stack_bias: the linear layers that drive automata have biases.
        dropout, attention_dropout, activation_dropout: probabilities of dropout: of embeddings and sublayers, of the
            weights of SDPA, and within feed-forward networks.
        stack_init: the initialisation: ``"fairseq"``, ``"paper"`` or ``"one-turn"``, see
            :func:`fairseq_stack.networks.initialization.initialize_transformer`.
        stack_init_scale: the scale of the paper's initialisation.
        stack_loops: how often the layers run, with the same weights.
        loop_injection: every loop also reads what the first one read.
    """

    stack_layers: str = "6xsdpa"
    stack_encoder_layers: str = "6xsdpa"
    decoder_embed_dim: int = 512
    encoder_embed_dim: int = 512
    decoder_input_dim: int | None = None
    decoder_output_dim: int | None = None
    decoder_ffn_embed_dim: int = 2048
    encoder_ffn_embed_dim: int = 2048
    decoder_attention_heads: int = 8
    encoder_attention_heads: int = 8
    decoder_normalize_before: bool = True
    encoder_normalize_before: bool = True
    no_decoder_final_norm: bool = False
    decoder_learned_pos: bool = False
    encoder_learned_pos: bool = False
    stack_positions: str = "fairseq"
    no_token_positional_embeddings: bool = False
    max_target_positions: int = 1024
    max_source_positions: int = 1024
    no_scale_embedding: bool = False
    layernorm_embedding: bool = False
    activation_fn: str = "relu"
    no_cross_attention: bool = False
    share_decoder_input_output_embed: bool = False
    share_all_embeddings: bool = False
    output_bias: bool = False
    compact_vocab: bool = False
    stack_value_activation: str = "sigmoid"
    stack_depth_limit: int | None = None
    stack_bias: bool = False
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    stack_init: str = "fairseq"
    stack_init_scale: float = 0.01
    stack_loops: int = 1
    loop_injection: bool = False

    def __post_init__(self) -> None:
        """Check what no module checks.

        Raises:
            UserError: an option has an unknown value.
        """
        if self.stack_loops < 1:
            raise UserError(f"stack_loops: expected at least 1, got {self.stack_loops}")
        _check_choice(self, "stack_positions", ("fairseq", "interleaved"))
        _check_choice(self, "stack_init", ("fairseq", "paper", "one-turn"))


@dataclass(frozen=True)
class LSTMOptions:
    """The options of LSTMs with stacks.

    Attributes:
        stack: the stacks, joined by ``+``; or ``"none"``.
        decoder_layers, controller, learned_initial_state, reading_in_output: see
            :class:`fairseq_stack.modules.StackLSTM`.
        decoder_hidden_size: the size of the hidden state.
        decoder_embed_dim: the size of the embeddings; None if the input is one-hot vectors.
        share_decoder_input_output_embed: the output layer has the table of the embeddings.
        output_bias: the output layer has a bias.
        compact_vocab: the output layer has a buffer ``possible`` that says which symbols can occur.
        decoder_dropout_in, decoder_dropout_out: probabilities of dropout of embeddings, and of what further layers and
            the output layer read.
        recurrent_dropout: see :class:`fairseq_stack.modules.StackLSTM`.
        push_hidden_state, stack_depth_limit: see :class:`fairseq_stack.modules.SuperpositionStackAttention`.
        normalize_transitions, bottom_vector: see :class:`fairseq_stack.modules.NondeterministicStackAttention`.
        states_in_reading, read_log_weights, original_bottom: see :class:`fairseq_stack.modules.SymbolStackAttention`.
        first: the token that is read in place of the first one; None: the first token is not read.
        stack_init: the initialisation: ``"uniform"``, ``"paper"`` or ``"one-turn"``, see
            :func:`fairseq_stack.networks.initialization.initialize_lstm`.
        stack_init_scale: its scale; fairseq's LSTM has 0.1.
    """

    stack: str = "none"
    decoder_layers: int = 1
    controller: str = "lstm"
    learned_initial_state: bool = False
    reading_in_output: bool = False
    decoder_hidden_size: int = 100
    decoder_embed_dim: int | None = None
    share_decoder_input_output_embed: bool = False
    output_bias: bool = False
    compact_vocab: bool = False
    decoder_dropout_in: float = 0.0
    decoder_dropout_out: float = 0.0
    recurrent_dropout: float = 0.0
    push_hidden_state: bool = False
    stack_depth_limit: int | None = None
    normalize_transitions: bool = False
    bottom_vector: str = "learned"
    states_in_reading: bool = True
    read_log_weights: bool = False
    original_bottom: bool = False
    first: int | None = None
    stack_init: str = "uniform"
    stack_init_scale: float = 0.1

    def __post_init__(self) -> None:
        """Check what no module checks.

        Raises:
            UserError: an option has an unknown value, or the shared table not the size of what the output layer reads.
        """
        _check_choice(self, "stack_init", ("uniform", "paper", "one-turn"))
        _check_choice(self, "controller", tuple(NUM_GATES))
        if self.share_decoder_input_output_embed and self.decoder_embed_dim != output_size(self):
            raise UserError(
                f"decoder_embed_dim: expected {output_size(self)}, the size of what the output layer reads, since "
                f"input and output share a table, got {self.decoder_embed_dim}"
            )


def output_size(options: Any) -> int:
    """The size of what the output layer of an LSTM reads: the hidden state and, with an option, the stack readings."""
    size: int = options.decoder_hidden_size
    if not options.reading_in_output:
        return size
    with torch.device("meta"):  # allocates nothing, and draws no random numbers
        return size + sum(stack.build_stack(size, options).reading_size for stack in parse_stacks(options.stack))


def _check_choice(options: object, name: str, choices: tuple[str, ...]) -> None:
    if getattr(options, name) not in choices:
        raise UserError(f"{name}: expected one of {', '.join(choices)}, got {getattr(options, name)!r}")
