"""fairseq's decoder of a language model, around an LSTM with stacks."""

from __future__ import annotations

from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.modules import FairseqDropout
from torch import Tensor, nn

from fairseq_stack.models.incremental import IncrementalState, ReadsAhead, RecurrentDecoder
from fairseq_stack.modules import StackLSTM, StackLSTMState
from fairseq_stack.networks.lstm import ReadsSequences


class StackLSTMDecoder(ReadsSequences, ReadsAhead, RecurrentDecoder):
    """A language model in fairseq that reads sequences as ``ReadsSequences`` says.

    Args:
        cfg: the options of the model, settled.
        dictionary: the dictionary.
        embed_tokens: maps tokens (...) to what the LSTM reads: vectors (..., d), or integers for one-hot vectors.
        lstm: the LSTM.
        output_projection: maps outputs of the LSTM to logits.
        first: of a model of a stream, the token that ends sentences there; None for other models.
    """

    def __init__(
        self,
        cfg: Any,
        dictionary: Dictionary,
        embed_tokens: nn.Module,
        lstm: StackLSTM,
        output_projection: nn.Module,
        first: int | None = None,
    ) -> None:
        super().__init__(cfg, dictionary)
        self.embed_tokens = embed_tokens
        self.lstm = lstm
        self.output_projection = output_projection
        self.first = first
        self.dropout_in = FairseqDropout(cfg.decoder_dropout_in, module_name=type(self).__name__)
        self.dropout_out = FairseqDropout(cfg.decoder_dropout_out, module_name=type(self).__name__)

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        incremental_state: IncrementalState | None = None,
        state: StackLSTMState | None = None,
        **kwargs: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """The output of the LSTM before each symbol that is to be predicted.

        Args:
            prev_output_tokens: (B, n), with padding anywhere.
            incremental_state: if given, the tokens are one more than in the last call, and only the last is read.
            state: if given, the sequences continue from here: every token, including the first, is read. Padding may
                only follow the tokens; such a sequence cannot be continued from the state after it.
            kwargs: what else fairseq gives, such as the lengths.

        Returns:
            The features, (B, n, output_size), or (B, 1, output_size) with ``incremental_state``; and a dictionary that,
            if ``state`` is given, has the state after the last token under ``"state"``.

        Raises:
            ValueError: decoding incrementally, a step was left out.
        """
        extra: dict[str, Any] = {"attn": None}  # fairseq's generator looks for it
        if incremental_state is not None:
            features = self._step(prev_output_tokens, incremental_state)
        elif state is not None:
            features, extra["state"] = self.lstm(self.embed(prev_output_tokens), state)
        else:
            padding = prev_output_tokens.eq(self.padding_idx)
            precedes_a_symbol = (padding[:, :-1] & ~padding[:, 1:]).any()
            features = self.read(prev_output_tokens, padding if precedes_a_symbol else None)
        return self.dropout_out(features), extra

    def output_layer(self, features: Tensor, **kwargs: Any) -> Tensor:
        """The logits for outputs of the LSTM."""
        logits: Tensor = self.output_projection(features)
        return logits

    def read_all(self, tokens: Tensor, incremental_state: IncrementalState) -> Tensor:
        features, state = self.begin(tokens, return_state=True)
        self.set_incremental_state(incremental_state, "state", state)
        return features  # extract_features applies dropout to them

    def _step(self, tokens: Tensor, incremental_state: IncrementalState) -> Tensor:
        ahead = self.take_step(incremental_state, tokens)
        if ahead is not None:
            return ahead
        state = self.get_incremental_state(incremental_state, "state")
        if state is None:
            state = self.lstm.initial_state(len(tokens))
            if self.first is not None:
                _, state = self.lstm.step(self.embed(torch.full_like(tokens[:, 0], self.first)), state)
        else:
            _, state = self.lstm.step(self.embed(tokens[:, -1]), state)
        self.set_incremental_state(incremental_state, "state", state)
        return self.lstm.output(state).unsqueeze(1)
