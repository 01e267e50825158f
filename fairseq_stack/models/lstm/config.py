"""The options of the stack LSTMs.

fairseq reads these types at run time: annotations must not be postponed, and optional ones be spelled ``Optional``.
"""

# ruff: noqa: UP045

from dataclasses import dataclass, field
from typing import Optional

from fairseq.dataclass import ChoiceEnum
from omegaconf import II

from fairseq_stack.kinds import spellings
from fairseq_stack.models.config import VocabularyOptions

INITIALIZATIONS = ChoiceEnum(["fairseq", "paper", "uniform"])
BOTTOM_VECTORS = ChoiceEnum(["learned", "zero", "one"])


@dataclass
class StackLSTMLanguageModelConfig(VocabularyOptions):
    """The options of a language model that is an LSTM with stacks; the presets set them as in the papers."""

    stack: str = field(
        default="none",
        metadata={
            "help": f"the stack of the LSTM ({spellings(stacks_only=True)}), several of them joined by '+', "
            "e.g. sup-3+sup-3, or none"
        },
    )
    decoder_hidden_size: int = field(default=100, metadata={"help": "size of the hidden state"})
    decoder_embed_dim: Optional[int] = field(
        default=None,
        metadata={
            "help": "size of input embeddings (default: --decoder-hidden-size with "
            "--share-decoder-input-output-embed, otherwise the input is one-hot vectors)"
        },
    )
    share_decoder_input_output_embed: bool = field(
        default=False, metadata={"help": "share the table of the embeddings with the output layer"}
    )
    dropout: float = field(default=0.0, metadata={"help": "dropout probability of embeddings and hidden states"})
    decoder_dropout_in: Optional[float] = field(
        default=None, metadata={"help": "dropout probability of embeddings (default: --dropout)"}
    )
    decoder_dropout_out: Optional[float] = field(
        default=None,
        metadata={"help": "dropout probability of the hidden states that the output layer reads (default: --dropout)"},
    )
    recurrent_dropout: float = field(
        default=0.0,
        metadata={"help": "dropout probability of the updates of the memory cell, as in Semeniuta et al. (2016)"},
    )
    push_hidden_state: bool = field(
        default=False,
        metadata={"help": "sup: push the hidden state itself, whose size M must be, instead of a learned vector"},
    )
    stack_depth_limit: Optional[int] = field(
        default=None, metadata={"help": "sup: hold so many elements, and lose what is deeper (default: no limit)"}
    )
    normalize_transitions: bool = field(
        default=False,
        metadata={"help": "nd, ns: make the weights of the transitions that leave a state and symbol sum to 1"},
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
            "help": "initialization: that of fairseq's LSTM; as in Appendix D.2 of DuSell & Chiang 2024 ('paper'); or "
            "all parameters from [-scale, scale] ('uniform')"
        },
    )
    stack_init_scale: Optional[float] = field(
        default=None,
        metadata={
            "help": "with --stack-init paper: other parameters are drawn from [-scale, scale]; with uniform: all are "
            "(default: 0.1)"
        },
    )
    add_bos_token: bool = II("task.add_bos_token")
    tokens_per_sample: int = II("task.tokens_per_sample")
    max_target_positions: Optional[int] = II("task.max_target_positions")
