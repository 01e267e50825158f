"""Self-attention that knows the depths of tokens: the Pushdown Layers of Murty et al. (2023)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from fairseq_stack.modules._shapes import check_shape
from fairseq_stack.modules.distances import DistanceScores
from fairseq_stack.modules.dropout import Dropout
from fairseq_stack.modules.stack_attention import at_least_float32
from fairseq_stack.ops._states import Rows
from fairseq_stack.ops.depth_scores import depth_scores

Parametrization = Literal["equations", "figures", "released"]
PARAMETRIZATIONS = ("equations", "figures", "released")


@dataclass(frozen=True, eq=False)
class KeysAndValues(Rows):
    """What attention keeps of the tokens that it has read. Immutable.

    Attributes:
        keys: (B, H, t, s).
        values: (B, H, t, s).
    """

    keys: Tensor
    values: Tensor


class PushdownAttention(nn.Module):
    """Causal attention in which a key depends on the depth of its token (Eq. 6 of Murty et al., 2023).

    The key of token j for token i is

    - ``"equations"``: W_k (h_j + e), as in Eq. 6, where e is the embedding of the depth W_i[j];
    - ``"figures"``: W_k h_j + b + e, as in Fig. 7, where the heads share the embeddings; the only one with biases;
    - ``"released"``: W_k h_j + e, as in the authors' code, which also adds ``q_i . W_r p_{j-i}`` to the score.

    The output at i depends on tokens only up to i, so padding at the end of a sequence changes nothing before it.

    Args:
        model_size: d, the size of inputs and outputs.
        num_heads: H; heads have the size s = d / H.
        num_depths: D, the size of the table of depths; larger depths become D - 1. None: keys do not depend on depths.
        parametrization: how keys depend on depths.
        dropout: of the weights of attention.

    Raises:
        ValueError: H does not divide d, the table is empty, or the parametrization is unknown.
    """

    def __init__(
        self,
        model_size: int,
        num_heads: int,
        num_depths: int | None,
        parametrization: Parametrization = "figures",
        *,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_parametrization(parametrization, num_depths)
        if model_size % num_heads:
            raise ValueError(f"num_heads: expected a divisor of the size {model_size}, got {num_heads}")
        self.model_size, self.num_heads, self.head_size = model_size, num_heads, model_size // num_heads
        self.parametrization = parametrization
        has_bias = parametrization == "figures"
        self.projection = nn.Linear(model_size, 3 * model_size, bias=has_bias)
        self.output = nn.Linear(model_size, model_size, bias=has_bias)
        embedding_size = model_size if parametrization == "equations" else self.head_size
        self.depths = None if num_depths is None else nn.Embedding(num_depths, embedding_size)
        is_released = parametrization == "released"
        self.distances = DistanceScores(model_size, num_heads, self.head_size) if is_released else None
        self.dropout = Dropout(dropout)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters again: queries, keys and values as three matrices; biases are 0."""
        for weight in self.projection.weight.data.chunk(3):
            nn.init.xavier_uniform_(weight)
        nn.init.xavier_uniform_(self.output.weight)
        for linear in (self.projection, self.output):
            if linear.bias is not None:
                nn.init.zeros_(linear.bias)
        if self.depths is not None:
            nn.init.normal_(self.depths.weight, std=0.02)

    def forward(self, inputs: Tensor, tape: Tensor) -> Tensor:
        """The outputs (B, n, d) of the inputs (B, n, d) with the tape W_0, ..., W_{n-1}, (B, n, n).

        Raises:
            ValueError: the inputs or the tape have another shape.
        """
        check_shape("inputs", inputs, "B", "n", self.model_size)
        check_shape("tape", tape, *inputs.shape[:2], inputs.size(1))
        return self._attend(*self._project(inputs), tape)

    def weights(self, inputs: Tensor, tape: Tensor) -> Tensor:
        """The weights of attention (B, H, n, n), without dropout."""
        queries, keys, _ = self._project(inputs)
        return at_least_float32(self._scores(queries, keys, tape)).softmax(3)

    def initial_state(self, batch_size: int) -> KeysAndValues:
        """The state before the first token."""
        nothing = self.projection.weight.new_empty(batch_size, self.num_heads, 0, self.head_size)
        return KeysAndValues(nothing, nothing)

    def step(self, inputs: Tensor, state: KeysAndValues, row: Tensor) -> tuple[Tensor, KeysAndValues]:
        """The output (B, d) of token t, for its input (B, d) and the row W_t of the tape, and the state after it.

        The row has the shape (B, t + 1). What was computed for earlier tokens with their rows stays as it is.

        Raises:
            ValueError: the input or the row has another shape.
        """
        batch_size, _, length, _ = state.keys.shape
        check_shape("inputs", inputs, batch_size, self.model_size)
        check_shape("row", row, batch_size, length + 1)
        queries, key, value = self._project(inputs.unsqueeze(1))
        state = KeysAndValues(torch.cat([state.keys, key], 2), torch.cat([state.values, value], 2))
        return self._attend(queries, state.keys, state.values, row.unsqueeze(1)).squeeze(1), state

    def _project(self, inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, which are scaled, keys and values, (B, H, n, s)."""
        projected = self.projection(inputs).unflatten(2, (3, self.num_heads, self.head_size))
        queries, keys, values = projected.permute(2, 0, 3, 1, 4)
        return queries / math.sqrt(self.head_size), keys, values

    def _attend(self, queries: Tensor, keys: Tensor, values: Tensor, tape: Tensor) -> Tensor:
        weights = at_least_float32(self._scores(queries, keys, tape)).softmax(3).to(values.dtype)
        return self.output(torch.matmul(self.dropout(weights), values).transpose(1, 2).flatten(2))

    def _scores(self, queries: Tensor, keys: Tensor, tape: Tensor) -> Tensor:
        """(B, H, m, n), for the queries of the last m of n tokens."""
        scores = torch.matmul(queries, keys.transpose(2, 3))
        if self.depths is not None:
            scores += depth_scores(queries, self._depth_keys(self.depths), tape)
        if self.distances is not None:
            scores += self.distances(queries, keys.size(2))
        return scores.masked_fill_(is_later(scores.size(2), scores.size(3), scores.device), -math.inf)

    def _depth_keys(self, depths: nn.Embedding) -> Tensor:
        """What depths add to keys: (D, s), which the heads share, or W_k applied to embeddings, (H, D, s)."""
        if self.parametrization != "equations":
            return depths.weight
        key_weight = self.projection.weight.chunk(3)[1].view(self.num_heads, self.head_size, self.model_size)
        return torch.matmul(depths.weight, key_weight.transpose(1, 2))


def check_parametrization(parametrization: str, num_depths: int | None) -> None:
    """Check the arguments that attention and the attachment head share.

    Raises:
        ValueError: the table of depths is empty, or the parametrization is unknown.
    """
    if parametrization not in PARAMETRIZATIONS:
        raise ValueError(f"parametrization: expected one of {PARAMETRIZATIONS}, got {parametrization!r}")
    if num_depths is not None and num_depths < 1:
        raise ValueError(f"num_depths: expected at least 1, or None, got {num_depths}")


def is_later(queries: int, keys: int, device: torch.device) -> Tensor:
    """Whether a key comes after a query, (m, n), where the queries belong to the last m of n tokens."""
    return torch.ones(queries, keys, dtype=torch.bool, device=device).triu(keys - queries + 1)
