"""Language models for transformers: networks of :mod:`fairseq_stack.networks` with what it expects of a model."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from transformers import GenerationMixin, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutputWithPast
from transformers.utils import can_return_tuple

from fairseq_stack.errors import UserError
from fairseq_stack.files import written_whole
from fairseq_stack.huggingface.cache import StackCache
from fairseq_stack.huggingface.configuration import (
    REMOTE_MODULE,
    StackConfig,
    StackLSTMLMConfig,
    StackTransformerLMConfig,
)
from fairseq_stack.networks import StackLSTMLM, StackTransformerLM

# transformers 5.23 and before say "past_key_values".
CACHE = "cache" if "cache" in CausalLMOutputWithPast.__dataclass_fields__ else "past_key_values"


class StackModel(PreTrainedModel, GenerationMixin):
    """A network as a model of transformers.

    It has no attention weights and no hidden states to show, and reads tokens only, no embeddings.

    Attributes:
        network_class: the class of the network.
    """

    base_model_prefix = "model"
    config_class: ClassVar[type[StackConfig]]
    network_class: ClassVar[type[nn.Module]]
    model: Any
    _is_stateful = True  # refuses the kinds of generation that would return to an earlier state
    _tied_weights_keys: dict[str, str] = {  # noqa: RUF012
        "model.decoder.output_projection.weight": "model.decoder.embed_tokens.weight"
    }

    def __init__(self, config: StackConfig) -> None:
        super().__init__(config)
        self.generation_config.suppress_tokens = [config.pad_token_id]  # as in fairseq's searches
        self.model = self.build_network(config)
        self.post_init()

    def build_network(self, config: StackConfig) -> nn.Module:
        """A new network, initialised as its options say."""
        network: nn.Module = self.network_class(config.options(), config.vocab_size, config.pad_token_id)
        return network

    @classmethod
    def of_network(cls, network: Any, **settings: Any) -> StackModel:
        """A model around a network.

        Args:
            network: of :attr:`network_class`.
            settings: of its configuration, besides the options of the network.
        """
        model = cls(cls.config_class(**asdict(network.options), **settings))
        model.model = network
        model.tie_weights()
        return model.eval()

    @classmethod
    def from_pretrained(cls, *args: Any, output_loading_info: bool = False, **kwargs: Any) -> Any:
        """As of transformers.

        Raises:
            UserError: the folder lacks parameters.
        """
        model, info = super().from_pretrained(*args, output_loading_info=True, **kwargs)
        missing = sorted(info["missing_keys"])
        if missing:
            raise UserError(f"{model.config.name_or_path} lacks parameters of the model, such as {missing[0]}")
        return (model, info) if output_loading_info else model

    def save_pretrained(self, save_directory: str | os.PathLike[str], *args: Any, **kwargs: Any) -> None:
        """As of transformers, with a module that names this package's classes, and files that others can read."""
        super().save_pretrained(save_directory, *args, **kwargs)
        with written_whole(Path(save_directory, f"{REMOTE_MODULE}.py")) as file:
            file.write(b"from fairseq_stack.huggingface import *  # noqa: F403\n")
        readable = Path(save_directory, "config.json").stat().st_mode
        for path in Path(save_directory).glob("*.safetensors"):
            path.chmod(readable)

    @classmethod
    def register_for_auto_class(cls, auto_class: str = "AutoModel") -> None:
        """Nothing: a saved folder names the class as it is, and has no copy of its code."""

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        return False  # the cache is a StackCache, made by forward

    def _init_weights(self, module: nn.Module) -> None:
        """Nothing: a network draws its parameters when it is made."""

    def get_input_embeddings(self) -> nn.Module:
        """The embeddings of the decoder's input."""
        embeddings: nn.Module = self.model.decoder.embed_tokens
        return embeddings

    def resize_token_embeddings(self, *args: Any, **kwargs: Any) -> nn.Module:
        """As of transformers.

        Raises:
            NotImplementedError: the model has no embeddings.
        """
        if not hasattr(self.get_input_embeddings(), "weight"):
            raise NotImplementedError("a model that reads one-hot vectors (decoder_embed_dim=None) cannot be resized")
        embeddings: nn.Module = super().resize_token_embeddings(*args, **kwargs)
        return embeddings

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Replace them."""
        self.model.decoder.embed_tokens = value

    def get_output_embeddings(self) -> nn.Module:
        """The output layer."""
        output: nn.Module = self.model.decoder.output_projection
        return output

    def set_output_embeddings(self, new: Any) -> None:
        """Give it other parameters: further symbols can occur."""
        output: Any = self.get_output_embeddings()
        output.weight, output.bias, output.out_features = new.weight, new.bias, new.out_features
        if output.possible is not None:
            output.possible = pad(output.possible, (0, new.out_features - len(output.possible)), value=True)


class StackForCausalLM(StackModel):
    """A language model."""

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: StackCache | None = None,
        cache: StackCache | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        logits_to_keep: int | Tensor = 0,
        **kwargs: Any,
    ) -> CausalLMOutputWithPast | tuple[Any, ...]:
        """The logits of the symbols that follow.

        Args:
            input_ids: tokens (B, n); the first one of a text is ``</s>``.
            attention_mask: (B, n), or (B, m + n) for m tokens in the cache: 0 at padding, which may be anywhere.
            past_key_values: what was read before the tokens; its name up to transformers 5.23.
            cache: the same, under its name from 5.24 on.
            labels: (B, n), the tokens again, with -100 where no loss is wanted.
            use_cache: whether a cache is returned (default: as in the configuration).
            logits_to_keep: the logits of so many tokens at the end (0: all), or of the tokens with these indices.
            kwargs: for the loss, such as ``num_items_in_batch``.

        Raises:
            ValueError: a text is longer than the model accepts.
        """
        cache = past_key_values if cache is None else cache
        padding = padding_of(attention_mask, input_ids, cache)
        if cache is None and (self.config.use_cache if use_cache is None else use_cache):
            cache = StackCache()
        logits = self.model(input_ids, padding) if cache is None else cache.extend(self.model, input_ids, padding)
        logits = logits[:, slice(-logits_to_keep, None) if isinstance(logits_to_keep, int) else logits_to_keep]
        loss = None
        if labels is not None:
            is_padding = input_ids.eq(self.config.pad_token_id) if padding is None else padding
            labels = labels.masked_fill(pad(is_padding[:, :-1], (1, 0)), -100)  # padding predicts nothing
            loss = self.loss_function(logits=logits, labels=labels, vocab_size=self.config.vocab_size, **kwargs)
        return CausalLMOutputWithPast(loss=loss, logits=logits, **{CACHE: cache})


class StackTransformerForCausalLM(StackForCausalLM):
    """A transformer language model with stacks."""

    config_class = StackTransformerLMConfig
    network_class = StackTransformerLM


class StackLSTMForCausalLM(StackForCausalLM):
    """An LSTM language model with stacks."""

    config_class = StackLSTMLMConfig
    network_class = StackLSTMLM


def padding_of(attention_mask: Tensor | None, tokens: Tensor, cache: StackCache | None = None) -> Tensor | None:
    """Where tokens (B, n, ...) are padding, (B, n), for a mask of these and earlier tokens.

    Without a mask the result is None: the tokens ``<pad>`` are padding. But after the tokens in a cache nothing is: a
    sequence that has ended is continued with ``<pad>``, and without reading it, it would fall behind the others.

    Raises:
        ValueError: the mask has another shape.
    """
    if attention_mask is not None:
        lengths = {tokens.size(1), tokens.size(1) + (0 if cache is None else cache.get_seq_length())}
        if attention_mask.dim() != 2 or attention_mask.size(1) not in lengths:
            expected = " or ".join(f"(B, {length})" for length in sorted(lengths))
            raise ValueError(f"attention_mask: expected shape {expected}, got {tuple(attention_mask.shape)}")
        return attention_mask[:, -tokens.size(1) :].eq(0)
    if cache is not None and cache.get_seq_length():
        return torch.zeros_like(tokens, dtype=torch.bool)
    return None
