"""Stack attention behind the interface that fairseq's transformer layers expect of self-attention."""

from __future__ import annotations

from typing import Any

from fairseq.incremental_decoding_utils import with_incremental_state
from fairseq.modules import MultiheadAttention
from torch import Tensor, nn

from fairseq_stack.models.incremental import IncrementalState, KeepsState
from fairseq_stack.modules import Gate, StatefulAttention


@with_incremental_state
class StackSelfAttention(KeepsState, nn.Module):
    """A stack attention sublayer that replaces fairseq's ``MultiheadAttention`` in ``layer.self_attn``.

    Args:
        attention: the sublayer function.
    """

    def __init__(self, attention: StatefulAttention) -> None:
        super().__init__()
        self.attention = attention
        # Read by the constructor of fairseq's decoder layer.
        self.num_heads = 1
        self.head_dim = attention.model_size

    def forward(
        self,
        query: Tensor,
        *,
        key_padding_mask: Tensor | None = None,
        incremental_state: IncrementalState | None = None,
        **kwargs: Any,
    ) -> tuple[Tensor, None]:
        """Map ``query`` (n, B, d) to the sublayer's output (n, B, d), which is 0 at padding.

        Args:
            query: (n, B, d).
            key_padding_mask: (B, n), true at padding, or None if there is none.
            incremental_state: if given, ``query`` is the newest symbols only.
            kwargs: what else fairseq gives, such as keys and values, which are the query.
        """
        if incremental_state is not None:
            return self._continue(query, incremental_state), None
        return self.attention(query.transpose(0, 1), key_padding_mask).transpose(0, 1), None

    def _continue(self, query: Tensor, incremental_state: IncrementalState) -> Tensor:
        state = self.get_incremental_state(incremental_state, "state")
        if state is None:
            state = self.attention.initial_state(query.size(1))
        if len(query) == 1:
            output, state = self.attention.step(query[0], state)
            outputs = output.unsqueeze(0)
        else:
            outputs, state = self.attention.extend(query.transpose(0, 1), state)
            outputs = outputs.transpose(0, 1)
        self.set_incremental_state(incremental_state, "state", state)
        return outputs

    def _get_input_buffer(self, incremental_state: IncrementalState | None) -> dict[str, Tensor]:
        """fairseq's decoder layer asks for saved keys and values; a stack has none."""
        return {}


class AttentionWithStack(MultiheadAttention):
    """fairseq's self-attention with a stack beside it: its outputs plus the gated stack readings.

    Args:
        attention: stack attention, of the size of the inputs.
        num_heads: of self-attention.
        dropout: of the weights of self-attention.
    """

    def __init__(self, attention: StatefulAttention, num_heads: int, dropout: float) -> None:
        super().__init__(attention.model_size, num_heads, dropout=dropout, self_attention=True)
        self.stack, self.gate = StackSelfAttention(attention), Gate(attention.model_size)

    def forward(self, query: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor | None]:
        """As fairseq's self-attention."""
        attended, weights = super().forward(query, *args, **kwargs)
        reading, _ = self.stack(query, **kwargs)
        return attended + self.gate(reading), weights
