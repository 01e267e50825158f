"""The configurations of the models: the options of the networks, and what transformers asks of every model."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar

from transformers import PreTrainedConfig

from fairseq_stack.errors import UserError
from fairseq_stack.networks import LSTMOptions, TransformerOptions

REMOTE_MODULE = "modeling_fairseq_stack"
"""The module that a folder of a model has, which names this package's classes for ``trust_remote_code``."""
PAD, END = 1, 2
_TRANSFORMER_NAMES = {
    "hidden_size": "decoder_embed_dim",
    "num_attention_heads": "decoder_attention_heads",
    "max_position_embeddings": "max_target_positions",
}
"""How transformers calls options of transformers."""


class StackConfig(PreTrainedConfig):
    """The options of a network, by name.

    Args:
        vocab_size: the number of symbols of the dictionary.
        settings: the options of the network (:attr:`options_class`), and settings of transformers.

    Raises:
        UserError: an option is of another network.

    Attributes:
        options_class: the class of the network's options.
    """

    options_class: ClassVar[type]
    auto_model: ClassVar[tuple[str, str]]
    keys_to_ignore_at_inference: ClassVar[list[str]] = ["past_key_values", "cache"]

    def __init__(self, vocab_size: int = 4, **settings: Any) -> None:
        for field in fields(self.options_class):
            setattr(self, field.name, settings.pop(field.name, field.default))
        for field in (*fields(TransformerOptions), *fields(LSTMOptions)):
            if field.name in settings:
                raise UserError(f"{type(self).__name__}: {field.name} is not one of its {self.options_class.__name__}")
        self.vocab_size = vocab_size
        self.use_cache = settings.pop("use_cache", True)
        special = {"pad_token_id": PAD, "bos_token_id": END, "eos_token_id": END}
        is_tied = self.share_decoder_input_output_embed or getattr(self, "share_all_embeddings", False)
        super().__init__(**{**special, "tie_word_embeddings": is_tied, **settings})
        classes = dict([("AutoConfig", type(self).__name__), self.auto_model])
        self.auto_map = {auto: f"{REMOTE_MODULE}.{name}" for auto, name in classes.items()}

    def options(self) -> Any:
        """The options of the network.

        Raises:
            UserError: an option has an unknown value.
        """
        return self.options_class(**{field.name: getattr(self, field.name) for field in fields(self.options_class)})

    @classmethod
    def register_for_auto_class(cls, auto_class: str = "AutoConfig") -> None:
        """Nothing: a saved folder names the class as it is, and has no copy of its code."""


class StackTransformerLMConfig(StackConfig):
    """Of a transformer language model."""

    model_type = "stack_transformer_lm"
    options_class = TransformerOptions
    auto_model = ("AutoModelForCausalLM", "StackTransformerForCausalLM")
    attribute_map = _TRANSFORMER_NAMES

    def __init__(self, **settings: Any) -> None:
        # Without a constructor, transformers would make a dataclass of this class.
        super().__init__(**settings)


class StackLSTMLMConfig(StackConfig):
    """Of an LSTM language model."""

    model_type = "stack_lstm_lm"
    options_class = LSTMOptions
    auto_model = ("AutoModelForCausalLM", "StackLSTMForCausalLM")
    attribute_map: ClassVar[dict[str, str]] = {"hidden_size": "decoder_hidden_size"}

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)


class StackTransformerConfig(StackConfig):
    """Of a transformer that translates.

    Args:
        source_vocab_size: the number of symbols of the source language's dictionary (default: ``vocab_size``).
        settings: see :class:`StackConfig`, whose dictionary is the target language's.
    """

    model_type = "stack_transformer"
    options_class = TransformerOptions
    auto_model = ("AutoModelForSeq2SeqLM", "StackTransformerForConditionalGeneration")
    attribute_map = _TRANSFORMER_NAMES

    def __init__(self, vocab_size: int = 4, source_vocab_size: int | None = None, **settings: Any) -> None:
        self.source_vocab_size = vocab_size if source_vocab_size is None else source_vocab_size
        super().__init__(vocab_size, **{"is_encoder_decoder": True, "decoder_start_token_id": END, **settings})
