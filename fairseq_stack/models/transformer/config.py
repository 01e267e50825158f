"""The options of the stack transformers.

fairseq reads these types at run time: annotations must not be postponed, and optional ones be spelled ``Optional``.
"""

# ruff: noqa: UP045

from dataclasses import dataclass, field
from typing import Optional

from fairseq.dataclass import ChoiceEnum
from fairseq.models.transformer_lm import TransformerLanguageModelConfig

from fairseq_stack.kinds import spellings
from fairseq_stack.models.config import VocabularyOptions

VALUE_ACTIVATIONS = ChoiceEnum(["sigmoid", "released"])
POSITIONS = ChoiceEnum(["fairseq", "interleaved"])
INITIALIZATIONS = ChoiceEnum(["fairseq", "paper"])


@dataclass
class StackOptions(VocabularyOptions):
    """The options that all stack transformers add to fairseq's; the presets set them as in the paper."""

    stack_value_activation: VALUE_ACTIVATIONS = field(  # type: ignore[valid-type]
        default="sigmoid",
        metadata={
            "help": "how pushed vectors are made: by a sigmoid (Eq. 17 of DuSell & Chiang 2024), or as in the "
            "authors' released code (no activation for sup, exp for nd; strat has no released code)"
        },
    )
    stack_depth_limit: Optional[int] = field(
        default=None,
        metadata={"help": "sup: how many elements a stack holds; deeper ones are lost (default: no limit)"},
    )
    stack_positions: POSITIONS = field(  # type: ignore[valid-type]
        default="fairseq",
        metadata={
            "help": "positional encodings: fairseq's, or the paper's ('interleaved'): interleaved sines and cosines, "
            "and positions from 0"
        },
    )
    stack_init: INITIALIZATIONS = field(  # type: ignore[valid-type]
        default="fairseq",
        metadata={"help": "initialization: fairseq's, or as in Appendix D.2 of DuSell & Chiang 2024 ('paper')"},
    )
    stack_init_scale: Optional[float] = field(
        default=None,
        metadata={"help": "with --stack-init paper: other parameters are drawn from [-scale, scale] (default: 0.01)"},
    )


@dataclass
class StackTransformerLanguageModelConfig(TransformerLanguageModelConfig, StackOptions):
    """fairseq's options for transformer language models and ours."""

    stack_layers: Optional[str] = field(
        default=None,
        metadata={
            "help": f"attention of each layer ({spellings()}), e.g. 2xsdpa,nd-3-3-10,2xsdpa; it sets the depth too"
        },
    )
    decoder_layers: Optional[int] = field(
        default=None, metadata={"help": "number of layers (default: as many as in --stack-layers; without it, 6)"}
    )
    decoder_input_dim: Optional[int] = field(
        default=None, metadata={"help": "size of input embeddings (default: --decoder-embed-dim)"}
    )
    decoder_output_dim: Optional[int] = field(
        default=None, metadata={"help": "size of output embeddings (default: --decoder-embed-dim)"}
    )
