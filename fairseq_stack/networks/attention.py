"""Self-attention, as scaled dot-product attention or by a stack, with a state for decoding."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from fairseq_stack.errors import UserError
from fairseq_stack.modules import BesideState, Gate, KeysAndValues, StatefulAttention
from fairseq_stack.modules.pushdown_attention import is_later
from fairseq_stack.networks.recurrences import Groups, Unread, extend


@dataclass(frozen=True, eq=False)
class Visible:
    """What tokens may attend to.

    Attributes:
        mask: true where a query may attend to a key, (B or 1, 1, m, t); None if it may everywhere.
        is_causal: whether it may attend to itself and the tokens before it, without a mask.
    """

    mask: Tensor | None
    is_causal: bool = False

    @classmethod
    def everything(cls, padding: Tensor | None) -> Visible:
        """Everything but padding, (B, t)."""
        return cls(None if padding is None else ~padding[:, None, None])

    @classmethod
    def before(cls, num_queries: int, num_keys: int, padding: Tensor | None, device: torch.device) -> Visible:
        """For the last m of t tokens, themselves and the tokens before them that are not padding, (B, t).

        Padding attends to itself, as a softmax over nothing would be NaN.
        """
        if padding is None and num_queries in (1, num_keys):
            return cls(None, is_causal=num_queries > 1)
        later = is_later(num_queries, num_keys, device)
        if padding is None:
            return cls(~later[None, None])
        itself = torch.ones_like(later).triu(num_keys - num_queries) & ~later
        return cls((~later & ~padding.unsqueeze(1) | itself).unsqueeze(1))


class MultiheadAttention(nn.Module):
    """Scaled dot-product attention with several heads (Eqs. 1-3 of DuSell & Chiang, 2024).

    Args:
        model_size: d, the size of inputs and outputs.
        num_heads: H; heads have the size s = d / H.
        dropout: of the weights of attention.
        source_size: the size of what is attended to (default: d).

    Raises:
        UserError: H does not divide d.
    """

    def __init__(self, model_size: int, num_heads: int, dropout: float = 0.0, source_size: int | None = None) -> None:
        super().__init__()
        if model_size % num_heads:
            raise UserError(f"attention heads: expected a divisor of the size {model_size}, got {num_heads}")
        self.num_heads, self.dropout = num_heads, dropout
        self.k_proj, self.v_proj = (nn.Linear(source_size or model_size, model_size) for _ in range(2))
        self.q_proj, self.out_proj = (nn.Linear(model_size, model_size) for _ in range(2))
        gain = 1.0 if source_size not in (None, model_size) else 1 / math.sqrt(2)
        for projection in (self.k_proj, self.v_proj, self.q_proj):
            nn.init.xavier_uniform_(projection.weight, gain)
        nn.init.xavier_uniform_(self.out_proj.weight)
        nn.init.zeros_(self.out_proj.bias)

    def keys_and_values(self, source: Tensor) -> KeysAndValues:
        """Of what is attended to, (B, t, source_size)."""
        return KeysAndValues(self._heads(self.k_proj(source)), self._heads(self.v_proj(source)))

    def attend(self, inputs: Tensor, source: KeysAndValues, visible: Visible) -> Tensor:
        """The outputs (B, m, d) of inputs (B, m, d)."""
        queries = self._heads(self.q_proj(inputs))
        dropout = self.dropout if self.training else 0.0
        attended = scaled_dot_product_attention(
            queries, source.keys, source.values, visible.mask, dropout, visible.is_causal
        )
        outputs: Tensor = self.out_proj(attended.transpose(1, 2).flatten(2))
        return outputs

    def extend(
        self, inputs: Tensor, padding: Tensor | None, state: KeysAndValues | None, visible: Visible
    ) -> tuple[Tensor, KeysAndValues]:
        """Self-attention; see :meth:`StackSelfAttention.extend`. The mask covers tokens of earlier calls as well."""
        source = self.keys_and_values(inputs)
        if state is not None:
            source = KeysAndValues(torch.cat([state.keys, source.keys], 2), torch.cat([state.values, source.values], 2))
        return self.attend(inputs, source, visible), source

    def _heads(self, projected: Tensor) -> Tensor:
        """(B, t, d) as (B, H, t, s)."""
        return projected.unflatten(2, (self.num_heads, -1)).transpose(1, 2)


class StackSelfAttention(nn.Module):
    """Stack attention with a state for decoding.

    Args:
        attention: the sublayer function.
    """

    def __init__(self, attention: StatefulAttention) -> None:
        super().__init__()
        self.attention = attention

    def extend(
        self, inputs: Tensor, padding: Tensor | None, state: Unread | Groups | None, visible: Visible
    ) -> tuple[Tensor, Unread | Groups]:
        """The outputs (B, n, d), 0 at padding, and the state after the inputs.

        Args:
            inputs: (B, n, d).
            padding: (B, n), true at padding; or None.
            state: the state before the inputs; None at the beginning.
            visible: what attention sees; the stack does not need it.
        """
        if state is None:
            return self.attention(inputs, padding), Unread(inputs, padding)
        return extend(self.attention.extend, self.attention.initial_state, inputs, padding, state)


class AttentionWithStack(MultiheadAttention):
    """Scaled dot-product attention with a stack beside it: its outputs plus the gated stack readings.

    Args:
        attention: the sublayer function of the stack.
        num_heads: H.
        dropout: of the weights of attention.
    """

    def __init__(self, attention: StatefulAttention, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__(attention.model_size, num_heads, dropout)
        self.stack, self.gate = StackSelfAttention(attention), Gate(attention.model_size)

    def extend(  # type: ignore[override]  # a pair of states
        self, inputs: Tensor, padding: Tensor | None, state: BesideState | None, visible: Visible
    ) -> tuple[Tensor, BesideState]:
        """See :meth:`StackSelfAttention.extend`."""
        before = BesideState(None, None) if state is None else state
        attended, of_attention = super().extend(inputs, padding, before.attention, visible)
        reading, of_stack = self.stack.extend(inputs, padding, before.stack, visible)
        return attended + self.gate(reading), BesideState(of_attention, of_stack)
