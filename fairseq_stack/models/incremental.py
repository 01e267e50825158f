"""Decoding one token a step: what a model keeps from step to step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqIncrementalDecoder
from torch import Tensor

from fairseq_stack.models.vocabulary import register_fingerprint

IncrementalState = dict[str, dict[str, Any]]


class KeepsState:
    """Mixin for fairseq's incremental modules: their ``"state"`` has a row for each hypothesis of a beam."""

    # fairseq's ``with_incremental_state`` gives them.
    get_incremental_state: Callable[..., Any]
    set_incremental_state: Callable[..., None]

    def reorder_incremental_state(self, incremental_state: IncrementalState, new_order: Tensor) -> None:
        """Keep the states of the hypotheses that ``new_order`` lists."""
        state = self.get_incremental_state(incremental_state, "state")
        if state is not None:
            self.set_incremental_state(incremental_state, "state", state.reorder(new_order))


class StepwiseDecoder:
    """Mixin for fairseq's incremental decoders: one token per step, none of them skipped."""

    get_incremental_state: Callable[..., dict[str, Any] | None]
    set_incremental_state: Callable[..., None]

    def take_step(self, incremental_state: IncrementalState, tokens: Tensor) -> Tensor | None:
        """Count a step, for which the decoder is given ``tokens`` (B, n).

        Returns:
            The features of the last token, (B, 1, d), if it was read ahead (:class:`ReadsAhead`); None otherwise.

        Raises:
            ValueError: there is not one token more than at the step before.
        """
        steps = self.get_incremental_state(incremental_state, "steps") or {"length": 0, "ahead": None}
        ahead, (num_rows, num_tokens) = steps["ahead"], tokens.shape
        if num_tokens != steps["length"] + 1:  # fairseq's decoders would silently skip the tokens between
            raise ValueError(
                f"incremental decoding takes one token per step: expected {steps['length'] + 1} previous output "
                f"tokens, got {num_tokens}"
            )
        if ahead is not None and num_tokens > ahead.size(1):
            ahead = None
        steps = {"length": num_tokens, "num_rows": num_rows, "ahead": ahead}
        self.set_incremental_state(incremental_state, "steps", steps)
        return None if ahead is None else ahead[:, num_tokens - 1 : num_tokens]

    def reorder_incremental_state_scripting(self, incremental_state: IncrementalState, new_order: Tensor) -> None:
        """Keep the states of the hypotheses that ``new_order`` lists: in greedy search mostly all, as they are."""
        steps = self.get_incremental_state(incremental_state, "steps")
        if steps is not None:
            if new_order.equal(torch.arange(steps["num_rows"], device=new_order.device)):
                return
            ahead = None if steps["ahead"] is None else steps["ahead"].index_select(0, new_order)
            self.set_incremental_state(
                incremental_state, "steps", {**steps, "num_rows": len(new_order), "ahead": ahead}
            )
        super().reorder_incremental_state_scripting(incremental_state, new_order)  # type: ignore[misc]


class ReadsAhead(StepwiseDecoder, ABC):
    """Mixin for decoders of language models that read the beginning of their sequences at once."""

    def read_ahead(self, tokens: Tensor, incremental_state: IncrementalState) -> None:
        """Read the first n tokens, (B, n), of sequences; the first n steps then find their features computed.

        Args:
            tokens: without padding.
            incremental_state: empty; it becomes the state after n steps.
        """
        features = self.read_all(tokens, incremental_state)
        steps = {"length": 0, "num_rows": len(tokens), "ahead": features}
        self.set_incremental_state(incremental_state, "steps", steps)

    @abstractmethod
    def read_all(self, tokens: Tensor, incremental_state: IncrementalState) -> Tensor:
        """The features of tokens (B, n), (B, n, d); the state after them is kept."""


class RecurrentDecoder(KeepsState, StepwiseDecoder, FairseqIncrementalDecoder):
    """The decoder of a language model that continues from a state.

    Args:
        cfg: the options of the model, settled.
        dictionary: the dictionary.
    """

    def __init__(self, cfg: Any, dictionary: Dictionary) -> None:
        super().__init__(dictionary)
        self.cfg = cfg
        self.padding_idx = dictionary.pad()
        register_fingerprint(self, dictionary)

    def forward(
        self, prev_output_tokens: Tensor, features_only: bool = False, **kwargs: Any
    ) -> tuple[Tensor, dict[str, Any]]:
        """The logits (B, n, V) of ``extract_features``, or with ``features_only`` the features themselves."""
        features, extra = self.extract_features(prev_output_tokens, **kwargs)
        return features if features_only else self.output_layer(features), extra

    def max_positions(self) -> int:
        """The longest sequence that is accepted."""
        max_positions: int = self.cfg.max_target_positions
        return max_positions
