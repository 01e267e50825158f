"""The translation model for transformers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput
from transformers.utils import can_return_tuple

from fairseq_stack.huggingface.cache import StackCache
from fairseq_stack.huggingface.configuration import StackTransformerConfig
from fairseq_stack.huggingface.modeling import CACHE, StackModel, padding_of
from fairseq_stack.networks import Encoded, StackTransformer

IGNORED = -100
"""What stands for padding in labels, as everywhere in transformers."""


class StackTransformerForConditionalGeneration(StackModel):
    """A transformer with stacks that translates."""

    config_class = StackTransformerConfig
    network_class = StackTransformer

    def __init__(self, config: StackTransformerConfig) -> None:
        self._tied_weights_keys = dict(type(self)._tied_weights_keys)
        if config.share_all_embeddings:
            self._tied_weights_keys["model.encoder.embed_tokens.weight"] = "model.decoder.embed_tokens.weight"
        super().__init__(config)

    def build_network(self, config: Any) -> nn.Module:
        """A new network, initialised as its options say."""
        return StackTransformer(config.options(), config.source_vocab_size, config.vocab_size, config.pad_token_id)

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: BaseModelOutput | tuple[Tensor, ...] | None = None,
        past_key_values: StackCache | None = None,
        cache: StackCache | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        **kwargs: Any,
    ) -> Seq2SeqLMOutput | tuple[Any, ...]:
        """The logits of the symbols that follow those of the translation.

        Args:
            input_ids: the tokens of the source (B, m), which end in ``</s>``.
            attention_mask: (B, m), 0 at padding, which may be anywhere (default: where the encoder found it).
            decoder_input_ids: the tokens of the translation (B, n), which begin with ``</s>`` (default: the labels,
                shifted to the right).
            decoder_attention_mask: (B, n), or (B, k + n) for k tokens in the cache.
            encoder_outputs: what the encoder returned, instead of ``input_ids``.
            past_key_values: what was read of the translation; its name up to transformers 5.23.
            cache: the same, under its name from 5.24 on.
            labels: the tokens of the translation (B, n), which end in ``</s>``, with -100 where no loss is wanted.
            use_cache: whether a cache is returned (default: as in the configuration).
            kwargs: for the loss, such as ``num_items_in_batch``.

        Raises:
            ValueError: a sequence is longer than the model accepts, or there is no source or no translation.
        """
        cache = past_key_values if cache is None else cache
        if encoder_outputs is None:
            if input_ids is None:
                raise ValueError("expected input_ids, the tokens of the source, or encoder_outputs, got neither")
            encoder_outputs = self.get_encoder()(input_ids, attention_mask)
        if decoder_input_ids is None:
            if labels is None:
                raise ValueError("expected decoder_input_ids, the tokens of the translation, or labels, got neither")
            decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        returned = cache is not None or (self.config.use_cache if use_cache is None else use_cache)
        cache = StackCache() if cache is None else cache
        states = encoder_outputs[0]
        known = getattr(encoder_outputs, "padding", None)
        encoded = Encoded(states, known if attention_mask is None else padding_of(attention_mask, states))
        padding = padding_of(decoder_attention_mask, decoder_input_ids, cache)
        logits = cache.extend(self.model, decoder_input_ids, padding, encoded)
        loss = None
        if labels is not None:
            loss = self.loss_function(logits, None, self.config.vocab_size, shift_labels=labels, **kwargs)
        kept = {CACHE: cache if returned else None}
        return Seq2SeqLMOutput(loss=loss, logits=logits, encoder_last_hidden_state=states, **kept)

    def prepare_decoder_input_ids_from_labels(self, labels: Tensor) -> Tensor:
        """The tokens that the decoder reads (B, n), to write the labels (B, n)."""
        start = torch.full_like(labels[:, :1], self.config.decoder_start_token_id)
        labels = labels.masked_fill(labels.eq(IGNORED), self.config.pad_token_id)
        return torch.cat([start, labels[:, :-1]], 1)

    def get_encoder(self, modality: str | None = None) -> Any:
        """The encoder, as ``generate`` calls it."""
        return _Encoder(self.model)

    def get_input_embeddings(self) -> nn.Module:
        """The embeddings of the source."""
        embeddings: nn.Module = self.model.encoder.embed_tokens
        return embeddings

    def resize_token_embeddings(self, *args: Any, **kwargs: Any) -> Any:
        """Impossible: source and translation have tables of their own.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("a translation model with two vocabularies cannot be resized")


@dataclass
class EncoderOutput(BaseModelOutput):
    """What the encoder returns: its last hidden states, and where the source is padding, (B, m); or None."""

    padding: Tensor | None = None


class _Encoder:
    """The encoder of a network as transformers calls it; no module, since the network has its parameters."""

    main_input_name: ClassVar[str] = "input_ids"

    def __init__(self, network: StackTransformer) -> None:
        self._network = network

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **kwargs: Any) -> EncoderOutput:
        encoded = self._network.encode(input_ids, None if attention_mask is None else attention_mask.eq(0))
        return EncoderOutput(last_hidden_state=encoded.outputs, padding=encoded.padding)

    __call__ = forward
