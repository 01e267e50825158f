"""fairseq's decoder of a language model, around a Pushdown Transformer."""

from __future__ import annotations

from typing import Any

import torch
from fairseq.data import Dictionary
from torch import Tensor

from fairseq_stack.models.incremental import IncrementalState, RecurrentDecoder
from fairseq_stack.modules import PushdownState, PushdownTransformer


class PushdownDecoder(RecurrentDecoder):
    """Reads sentences with the tapes of their parses, or decides itself what each word attaches to.

    Its own decisions are greedy: each word attaches to what is most probable. ``</s>``, which is before a sentence and
    ends it, is ROOT and the word that attaches to ROOT, and then ROOT of the next sentence.

    Args:
        cfg: the options of the model, settled.
        dictionary: the dictionary.
        network: the Pushdown Transformer.
    """

    def __init__(self, cfg: Any, dictionary: Dictionary, network: PushdownTransformer) -> None:
        super().__init__(cfg, dictionary)
        self.network = network
        self.embed_tokens = network.embedding

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        incremental_state: IncrementalState | None = None,
        tape: Tensor | None = None,
        next_words: Tensor | None = None,
        **kwargs: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """The final states, (B, n, d).

        Args:
            prev_output_tokens: (B, n), with padding on the right.
            incremental_state: if given, the tokens are one more than in the last call, and only the last is read.
            tape: the tapes of the parses (B, n, n). None: of the model's own decisions, if it reads tapes.
            next_words: with a tape, the words (B, n) whose attachments are to be scored.
            kwargs: what else fairseq gives, such as the lengths.

        Returns:
            These, and a dictionary that, if ``next_words`` are given, has the scores of their attachments,
            (B, n, n + 1), under ``"attachment_scores"``.

        Raises:
            ValueError: decoding incrementally, a step was left out.
        """
        extra: dict[str, Any] = {"attn": None}  # fairseq's generator looks for it
        if incremental_state is not None:
            hidden = self._step(prev_output_tokens, incremental_state).unsqueeze(1)
        elif tape is None and self.network.reads_tape:
            hidden = self._read_with_own_decisions(prev_output_tokens)
        else:
            if tape is None:  # no parse changes anything
                tape = prev_output_tokens.new_zeros(*prev_output_tokens.shape, prev_output_tokens.size(1))
            hidden = self.network(prev_output_tokens, tape)
            if next_words is not None:
                extra["attachment_scores"] = self.network.attachment_scores(hidden, next_words, tape)
        return hidden, extra

    def output_layer(self, features: Tensor, **kwargs: Any) -> Tensor:
        """The logits for final states."""
        logits: Tensor = self.network.output(features)
        return logits

    def _step(self, tokens: Tensor, incremental_state: IncrementalState) -> Tensor:
        self.take_step(incremental_state, tokens)
        state, words = self.get_incremental_state(incremental_state, "state"), tokens[:, -1]
        if state is None:
            state = self.network.initial_state(len(tokens))
        else:
            state = self.network.step(state, words, self._decision(state, words))
        self.set_incremental_state(incremental_state, "state", state)
        hidden: Tensor = state.hidden
        return hidden

    def _read_with_own_decisions(self, tokens: Tensor) -> Tensor:
        """The final states (B, n, d)."""
        state = self.network.initial_state(len(tokens))
        hidden = [state.hidden]
        for words in tokens[:, 1:].unbind(1):
            state = self.network.step(state, words, self._decision(state, words))
            hidden.append(state.hidden)
        return torch.stack(hidden, 1)

    def _decision(self, state: PushdownState, words: Tensor) -> Tensor:
        """What the next words attach to, (B,)."""
        return self.network.next_attachments(state, words).argmax(1)
