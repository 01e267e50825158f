"""Layers of transformers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from fairseq_stack.errors import UserError
from fairseq_stack.modules import KeysAndValues
from fairseq_stack.modules.dropout import Dropout
from fairseq_stack.modules.residual import ResidualLayer
from fairseq_stack.networks.attention import MultiheadAttention, StackSelfAttention, Visible
from fairseq_stack.ops._states import Rows


def _gelu(inputs: Tensor) -> Tensor:
    """As fairseq's, which computes it in float32."""
    return functional.gelu(inputs.float()).type_as(inputs)


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "gelu": _gelu,
    "gelu_accurate": partial(functional.gelu, approximate="tanh"),
    "gelu_fast": partial(functional.gelu, approximate="tanh"),
    "tanh": torch.tanh,
    "linear": lambda inputs: inputs,
}
"""The activation functions, by fairseq's names."""


@dataclass(frozen=True, eq=False)
class Encoded(Rows):
    """What a decoder attends to.

    Attributes:
        outputs: of the encoder, (B, m, d).
        padding: (B, m), true at padding; or None.
    """

    outputs: Tensor
    padding: Tensor | None


@dataclass(frozen=True, eq=False)
class LayerState(Rows):
    """What a layer keeps of the tokens that it has read. Immutable.

    Attributes:
        own: the state of self-attention.
        source: the encoder's keys and values; None without attention to an encoder.
    """

    own: Any
    source: KeysAndValues | None = None


class TransformerLayer(ResidualLayer):
    """Self-attention, attention to an encoder in some, and a feed-forward network.

    Args:
        self_attn: the self-attention.
        model_size: d.
        feedforward_size: the size of the hidden layer.
        encoder_attn: the attention to an encoder, if there is one.
        activation_fn: of the hidden layer, see :data:`ACTIVATIONS`.
        norm_first: see :class:`~fairseq_stack.modules.residual.ResidualLayer`.
        dropout: of the outputs of sublayers.
        activation_dropout: of the hidden layer.

    Raises:
        UserError: there is no such activation function.
    """

    def __init__(
        self,
        self_attn: MultiheadAttention | StackSelfAttention,
        model_size: int,
        feedforward_size: int,
        encoder_attn: MultiheadAttention | None = None,
        *,
        activation_fn: str = "relu",
        norm_first: bool = True,
        dropout: float = 0.0,
        activation_dropout: float = 0.0,
    ) -> None:
        super().__init__(norm_first, dropout)
        if activation_fn not in ACTIVATIONS:
            raise UserError(f"activation_fn: expected one of {', '.join(ACTIVATIONS)}, got {activation_fn!r}")
        self.self_attn = self_attn
        self.self_attn_layer_norm = nn.LayerNorm(model_size)
        self.encoder_attn = encoder_attn
        self.encoder_attn_layer_norm = None if encoder_attn is None else nn.LayerNorm(model_size)
        self.activation_fn = activation_fn
        self.activation_dropout = Dropout(activation_dropout)
        self.fc1, self.fc2 = nn.Linear(model_size, feedforward_size), nn.Linear(feedforward_size, model_size)
        self.final_layer_norm = nn.LayerNorm(model_size)

    def extend(
        self,
        inputs: Tensor,
        padding: Tensor | None,
        state: LayerState | None,
        visible: Visible,
        encoded: Encoded | None = None,
    ) -> tuple[Tensor, LayerState]:
        """The outputs (B, n, d) of inputs (B, n, d), and the state after them, as in ``StackSelfAttention``."""
        normed = self.before(self.self_attn_layer_norm, inputs)
        attended, own = self.self_attn.extend(normed, padding, None if state is None else state.own, visible)
        inputs = self.after(self.self_attn_layer_norm, inputs, attended)
        inputs, source = self._attend_to_encoder(inputs, None if state is None else state.source, encoded)
        hidden = ACTIVATIONS[self.activation_fn](self.fc1(self.before(self.final_layer_norm, inputs)))
        outputs = self.fc2(self.activation_dropout(hidden))
        return self.after(self.final_layer_norm, inputs, outputs), LayerState(own, source)

    def _attend_to_encoder(
        self, inputs: Tensor, source: KeysAndValues | None, encoded: Encoded | None
    ) -> tuple[Tensor, KeysAndValues | None]:
        """The inputs after attention to the encoder, and its keys and values, computed unless they are given."""
        if self.encoder_attn is None or self.encoder_attn_layer_norm is None or encoded is None:
            return inputs, None
        if source is None:
            source = self.encoder_attn.keys_and_values(encoded.outputs)
        normed = self.before(self.encoder_attn_layer_norm, inputs)
        attended = self.encoder_attn.attend(normed, source, Visible.everything(encoded.padding))
        return self.after(self.encoder_attn_layer_norm, inputs, attended), source
