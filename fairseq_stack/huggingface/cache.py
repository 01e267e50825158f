"""The state of a network as a cache of transformers."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin


class StackCache(Cache):
    """What a network has read of a batch of sequences: one layer for all of its layers."""

    def __init__(self) -> None:
        self.layer = StateLayer()
        super().__init__(layers=[self.layer])

    def extend(self, network: Any, tokens: Tensor, padding: Tensor | None, *inputs: Any) -> Tensor:
        """The logits (B, n, V) for further tokens (B, n), which the cache then holds as well.

        Args:
            network: of :mod:`fairseq_stack.networks`.
            tokens: (B, n).
            padding: (B, n), true at padding; or None if there is none.
            inputs: what else the network reads, such as the output of an encoder.
        """
        logits: Tensor
        logits, self.layer.state = network.extend(tokens, self.layer.state, *inputs, padding_mask=padding)
        self.layer.length += tokens.size(1)
        return logits


class StateLayer(CacheLayerMixin):
    """The immutable state of a network, or None before the first token.

    Attributes:
        length: how many tokens were read, with padding.
    """

    is_sliding = False
    supports_early_init = False

    def __init__(self) -> None:
        super().__init__()
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.state: Any = None
        self.length = 0

    def get_seq_length(self) -> int:
        """How many tokens were read."""
        return self.length

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """The length of a mask over what was read and ``query_length`` further tokens, and its offset."""
        return self.length + query_length, 0

    def get_max_length(self) -> int:
        """-1: the cache itself has no limit."""
        return -1

    get_max_cache_shape = get_max_length  # its name before transformers 5.23

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Keep the sequences that are listed, in that order and as often."""
        if self.state is not None:
            self.state = self.state.reorder(beam_idx.long())

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Impossible: see :meth:`update`."""
        self.update(key_states, value_states)

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Impossible: the state of a network is more than keys and values.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("the cache of a model with stacks has no keys and values: see StackCache.extend")
