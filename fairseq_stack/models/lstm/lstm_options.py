"""The options of the stack LSTMs: their declaration, and how they are settled before a model is built.

fairseq reads the types of options at run time: annotations must not be postponed, and optional ones be spelled
``Optional``.
"""

# ruff: noqa: UP045

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Optional

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from omegaconf import II

from fairseq_stack.errors import UserError
from fairseq_stack.kinds import STRATIFICATION, SUPERPOSITION, Layer, kinds, parse_stacks, spellings
from fairseq_stack.models.shared_options import (
    VocabularyOptions,
    check_at_least_one,
    check_compact_vocabulary,
    check_kinds,
    check_probabilities,
    flag,
    parse_option,
)
from fairseq_stack.modules.stack_lstm import NUM_GATES
from fairseq_stack.networks.options import output_size

MODEL = "stack_lstm_lm"
INITIALIZATIONS = ChoiceEnum(["fairseq", "paper", "uniform", "one-turn"])
BOTTOM_VECTORS = ChoiceEnum(["learned", "zero", "one"])
CONTROLLERS = ChoiceEnum(list(NUM_GATES))


@dataclass
class StackLSTMOptions(FairseqDataclass):
    """The options of an LSTM with stacks; the presets set them as in the papers."""

    stack: str = field(
        default="none",
        metadata={
            "help": f"the stack of the LSTM ({spellings(stacks_only=True)}), several of them joined by '+', "
            "e.g. sup-3+sup-3, or none"
        },
    )
    decoder_layers: int = field(default=1, metadata={"help": "number of layers; the last one drives the stacks"})
    controller: CONTROLLERS = field(  # type: ignore[valid-type]
        default="lstm", metadata={"help": "the cell: an LSTM's, or a simple recurrent network's ('rnn')"}
    )
    learned_initial_state: bool = field(
        default=False, metadata={"help": "learn the initial hidden state of each layer (default: 0)"}
    )
    reading_in_output: bool = field(
        default=False, metadata={"help": "the output layer also reads the stacks, after they were updated"}
    )
    decoder_hidden_size: int = field(default=100, metadata={"help": "size of the hidden state of a layer"})
    decoder_embed_dim: Optional[int] = field(
        default=None,
        metadata={
            "help": "size of input embeddings (default: with --share-decoder-input-output-embed, the size of what the "
            "output layer reads, otherwise the input is one-hot vectors)"
        },
    )
    dropout: float = field(default=0.0, metadata={"help": "dropout probability of embeddings and hidden states"})
    decoder_dropout_in: Optional[float] = field(
        default=None, metadata={"help": "dropout probability of embeddings (default: --dropout)"}
    )
    decoder_dropout_out: Optional[float] = field(
        default=None,
        metadata={"help": "dropout probability of what the output layer and further layers read (default: --dropout)"},
    )
    recurrent_dropout: float = field(
        default=0.0,
        metadata={"help": "dropout probability of the updates of the memory cell, as in Semeniuta et al. (2016)"},
    )
    push_hidden_state: bool = field(
        default=False,
        metadata={"help": "sup: push the hidden state itself, whose size must be M, instead of a learned vector"},
    )
    stack_depth_limit: Optional[int] = field(
        default=None, metadata={"help": "sup: maximum depth; deeper elements are discarded (default: no limit)"}
    )
    normalize_transitions: bool = field(
        default=False,
        metadata={"help": "nd, ns: normalise the weights of the transitions that leave a state and symbol to sum to 1"},
    )
    no_states_in_reading: bool = field(
        default=False, metadata={"help": "ns: read a distribution over symbols instead of over states and symbols"}
    )
    read_log_weights: bool = field(
        default=False,
        metadata={
            "help": "ns: read tanh(log w) for each state and symbol, where w is the weight of all runs that end there, "
            "instead of a distribution"
        },
    )
    original_bottom: bool = field(
        default=False,
        metadata={
            "help": "ns: as in DuSell & Chiang 2020 and 2022, the bottom symbol cannot be popped, replaced or uncovered"
        },
    )
    bottom_vector: BOTTOM_VECTORS = field(  # type: ignore[valid-type]
        default="learned", metadata={"help": "nd: the vector at the bottom of the stack"}
    )
    stack_init: INITIALIZATIONS = field(  # type: ignore[valid-type]
        default="fairseq",
        metadata={
            "help": "initialization: that of fairseq's LSTM; as in Appendix D.2 of DuSell & Chiang 2024 ('paper'); "
            "all parameters from [-scale, scale] ('uniform'); or fairseq's with automata that push, then pop "
            "('one-turn')"
        },
    )
    stack_init_scale: Optional[float] = field(
        default=None,
        metadata={
            "help": "with --stack-init paper: other parameters are drawn from [-scale, scale]; with uniform: all are "
            "(default: 0.1)"
        },
    )


@dataclass
class StackLSTMLanguageModelConfig(VocabularyOptions, StackLSTMOptions):
    """The options of a language model that is an LSTM with stacks."""

    share_decoder_input_output_embed: bool = field(
        default=False, metadata={"help": "share the embedding table with the output layer"}
    )
    add_bos_token: bool = II("task.add_bos_token")
    tokens_per_sample: int = II("task.tokens_per_sample")
    max_target_positions: Optional[int] = II("task.max_target_positions")


def settle(options: Namespace) -> None:
    """Fill in the options whose defaults depend on others, and check all options of a new model.

    Raises:
        UserError: an option is wrong, or options cannot be combined.
    """
    if options.add_bos_token:
        raise UserError(f"--add-bos-token: {MODEL} has no BOS token; leave the option out")
    check_compact_vocabulary(options)
    settle_stacks(options, MODEL)
    if options.max_target_positions is None:
        options.max_target_positions = options.tokens_per_sample


def settle_stacks(options: Namespace, model: str) -> None:
    """As :func:`settle`, for the options that any model with such an LSTM has."""
    for option in fields(StackLSTMOptions):  # checkpoints of earlier versions lack some
        vars(options).setdefault(option.name, option.default)
    options.states_in_reading = not options.no_states_in_reading  # as kinds know it
    check_at_least_one(options, "decoder_layers", "decoder_hidden_size", "decoder_embed_dim", "stack_depth_limit")
    stacks = parse_option(options, "stack", parse_stacks)
    check_kinds("stack", stacks, model)
    _check_options_of_stacks(options, stacks)
    if getattr(options, "share_decoder_input_output_embed", False):
        _settle_shared_table(options)
    _settle_dropout(options)


def _settle_shared_table(options: Namespace) -> None:
    size = output_size(options)
    if options.decoder_embed_dim is None:
        options.decoder_embed_dim = size
    if options.decoder_embed_dim != size:
        raise UserError(
            "--share-decoder-input-output-embed needs embeddings of the size of what the output layer reads: expected "
            f"--decoder-embed-dim {size}, got {options.decoder_embed_dim}"
        )


def _settle_dropout(options: Namespace) -> None:
    if options.decoder_embed_dim is None and options.decoder_dropout_in:
        raise UserError("--decoder-dropout-in needs embeddings: give --decoder-embed-dim")
    if options.decoder_dropout_in is None:
        options.decoder_dropout_in = options.dropout if options.decoder_embed_dim else 0.0
    if options.decoder_dropout_out is None:
        options.decoder_dropout_out = options.dropout
    check_probabilities(options, "dropout", "decoder_dropout_in", "decoder_dropout_out", "recurrent_dropout")
    if options.recurrent_dropout and options.controller != "lstm":
        raise UserError(f"--recurrent-dropout has no effect: expected --controller lstm, got {options.controller}")


def _check_options_of_stacks(options: Namespace, stacks: Sequence[Layer]) -> None:
    for option in dict.fromkeys(option for kind in kinds() for option in kind.controller_options.values()):
        name = "no_states_in_reading" if option == "states_in_reading" else option
        declared = StackLSTMOptions.__dataclass_fields__.get(name)
        is_set = declared is not None and getattr(options, name) != declared.default
        if is_set and not any(_takes(layer, option) for layer in stacks):
            taking = " or ".join(kind.name for kind in kinds() if option in kind.controller_options.values())
            raise UserError(
                f"{flag(name)} has no effect: expected a stack of the kind {taking}, got --stack {options.stack}"
            )
    if options.stack_init == "one-turn" and all(layer.kind in (SUPERPOSITION, STRATIFICATION) for layer in stacks):
        raise UserError(f"--stack-init one-turn has no effect: expected a stack nd or ns, got --stack {options.stack}")
    if options.reading_in_output and not stacks:
        raise UserError(f"--reading-in-output has no effect: expected a stack, got --stack {options.stack}")
    if options.push_hidden_state:
        for layer in stacks:
            if _takes(layer, "push_hidden_state") and layer.sizes != (options.decoder_hidden_size,):
                raise UserError(
                    f"--push-hidden-state: the stack holds hidden states, expected {layer.kind.name}-"
                    f"{options.decoder_hidden_size}, the size of --decoder-hidden-size, got {layer}"
                )


def _takes(layer: Layer, option: str) -> bool:
    return option in layer.kind.controller_options.values()
