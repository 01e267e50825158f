"""Attention by the delta rule: DeltaNet, gated DeltaNet and DeltaProduct."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import silu, softplus

from fairseq_stack.modules._shapes import check_shape
from fairseq_stack.modules.stateful_attention import StatefulAttention, at_least_float32
from fairseq_stack.ops import DeltaRuleState, computation_dtype
from fairseq_stack.ops._arguments import check_sizes
from fairseq_stack.ops._states import BatchState, Rows

_NORM_EPSILON = 1e-5
_LENGTH_EPSILON = 1e-6


class ShortConvolution(nn.Module):
    """A causal convolution of each channel with a short filter, and SiLU.

    Args:
        num_channels: how many channels there are.
        width: W, how many inputs an output sees, the newest last; 0 for SiLU alone.
    """

    def __init__(self, num_channels: int, width: int) -> None:
        super().__init__()
        self.num_channels, self.num_before = num_channels, max(0, width - 1)
        self.weight = nn.Parameter(torch.empty(num_channels, width)) if width else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the filters from U(+-1 / sqrt(W))."""
        if self.weight is not None:
            nn.init.uniform_(self.weight, -1 / math.sqrt(self.weight.size(1)), 1 / math.sqrt(self.weight.size(1)))

    def none_before(self, batch_size: int, like: Tensor) -> Tensor:
        """The W - 1 inputs before the first, which are 0, (B, W - 1, channels), in the dtype of ``like``."""
        return like.new_zeros(batch_size, self.num_before, self.num_channels)

    def forward(self, inputs: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
        """Map inputs (B, n, channels) and the last W - 1 before them to outputs, and the last W - 1 inputs now."""
        if self.weight is None:
            return silu(inputs), before
        seen, length = torch.cat([before.to(inputs.dtype), inputs], 1), inputs.size(1)
        parts = [seen[:, i : i + length] * weight for i, weight in enumerate(self.weight.unbind(1))]
        return silu(torch.stack(parts).sum(0)), seen[:, length:]


class Updates(NamedTuple):
    """What a sequence writes and asks, for all heads.

    Attributes:
        queries: q_t, (B, n, H, k), of length 1.
        keys: k_tj, (B, n, U, H, k), of length 1.
        values: v_tj, (B, n, U, H, v).
        strengths: beta_tj, (B, n, U, H).
        log_decays: l_t, (B, n, H), or None for no decay.
    """

    queries: Tensor
    keys: Tensor
    values: Tensor
    strengths: Tensor
    log_decays: Tensor | None

    def of_heads(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor | None]:
        """The arguments of :func:`fairseq_stack.ops.delta_rule`, with B H rows."""
        decays = None if self.log_decays is None else as_rows(self.log_decays, 2)
        strengths = as_rows(self.strengths, 3)
        return as_rows(self.queries, 2), as_rows(self.keys, 3), as_rows(self.values, 3), strengths, decays


def as_rows(x: Tensor, axis: int) -> Tensor:
    """Make the batch axis of B rows and the axis of H heads one of B H rows, the first axis."""
    return x.movedim(axis, 1).flatten(0, 1)


@dataclass(frozen=True, eq=False)
class OfHeads(Rows):
    """The state of an op for B H rows, as that of B rows.

    Attributes:
        rows: the state.
        num_heads: H.
    """

    rows: Any
    num_heads: int

    def reorder(self, index: Tensor) -> Self:
        rows = index.unsqueeze(1) * self.num_heads + torch.arange(self.num_heads, device=index.device)
        return super().reorder(rows.flatten())


@dataclass(frozen=True, eq=False)
class DeltaState(BatchState):
    """What attention by the delta rule remembers after t steps.

    Attributes:
        queries: the last W - 1 inputs of the convolution of queries, (B, W - 1, H k).
        keys: likewise, (B, W - 1, U H k).
        values: likewise, (B, W - 1, U H v).
        memory: S_t of all heads.
    """

    queries: Tensor
    keys: Tensor
    values: Tensor
    memory: OfHeads


class DeltaAttention(StatefulAttention):
    """Heads that write to, and read from, an associative memory each, by :func:`fairseq_stack.ops.delta_rule`.

    For H heads, with a convolution over the last W inputs and SiLU (conv), l2 for a vector scaled to length 1, and rms
    for RMS normalisation with weights g that all heads share:

        q_t = l2(conv(W_q x)_t),  k_tj = l2(conv(W_k x)_tj),  v_tj = conv(W_v x)_tj,  beta_tj = rho sigmoid(W_b x_t)_j
        l_t = -exp(A) softplus(W_f x_t + b)  with decay,       y_t = W_o [rms(o_t), times silu(W_g x_t) with a gate]

    With one update per step it is DeltaNet, with decay gated DeltaNet, and with several updates DeltaProduct.

    Args:
        model_size: d_model.
        num_heads: H.
        key_size: k, of a head.
        value_size: v, of a head.
        num_updates: U, how many updates a step has.
        decay: whether the memory decays.
        beta_scale: rho: strengths are in (0, rho). With 2, updates can change signs in the memory; DeltaNet had 1.
        convolution: W; 0 for no convolution.
        output_gate: whether there is W_g.
    """

    def __init__(
        self,
        model_size: int,
        num_heads: int,
        key_size: int,
        value_size: int,
        num_updates: int = 1,
        *,
        decay: bool = False,
        beta_scale: float = 2.0,
        convolution: int = 4,
        output_gate: bool = False,
    ) -> None:
        check_sizes(model_size=model_size, num_heads=num_heads, num_updates=num_updates)
        check_sizes(key_size=key_size, value_size=value_size)
        super().__init__(model_size, model_size)
        self.num_heads, self.key_size, self.value_size = num_heads, key_size, value_size
        self.num_updates, self.beta_scale = num_updates, beta_scale
        keys, values, written = num_heads * key_size, num_heads * value_size, num_heads * num_updates
        self.queries = nn.Linear(model_size, keys, bias=False)
        self.keys = nn.Linear(model_size, num_updates * keys, bias=False)
        self.values = nn.Linear(model_size, num_updates * values, bias=False)
        self.strengths = nn.Linear(model_size, written, bias=False)
        self.query_convolution = ShortConvolution(keys, convolution)
        self.key_convolution = ShortConvolution(num_updates * keys, convolution)
        self.value_convolution = ShortConvolution(num_updates * values, convolution)
        self.decays = nn.Linear(model_size, num_heads, bias=False) if decay else None
        self.log_rates = nn.Parameter(torch.empty(num_heads)) if decay else None
        self.decay_bias = nn.Parameter(torch.empty(num_heads)) if decay else None
        self.norm = nn.Parameter(torch.empty(value_size))
        self.gates = nn.Linear(model_size, values, bias=False) if output_gate else None
        self.output = nn.Linear(values, model_size, bias=False)
        DeltaAttention.reset_parameters(self)

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw all parameters as the authors' layers do in experiments on formal languages."""
        for module in self.children():
            module.reset_parameters()  # type: ignore[operator]
        nn.init.ones_(self.norm)
        if self.log_rates is not None and self.decay_bias is not None:
            self.log_rates.uniform_(0, 16).log_()
            rates = self.decay_bias.uniform_(math.log(1e-3), math.log(1e-1)).exp().clamp(min=1e-4)
            self.decay_bias.copy_(rates + torch.log(-torch.expm1(-rates)))  # whose softplus the rates are

    def initialize_as_in_paper(self) -> None:
        """The paper of stack attention has no such layers: they begin as their own authors say."""
        self.reset_parameters()

    def initial_state(self, batch_size: int) -> DeltaState:
        weight = self.output.weight
        memory = DeltaRuleState.initial(
            batch_size=batch_size * self.num_heads,
            key_size=self.key_size,
            value_size=self.value_size,
            dtype=computation_dtype(weight.dtype),
            device=weight.device,
        )
        return DeltaState(
            self.query_convolution.none_before(batch_size, weight),
            self.key_convolution.none_before(batch_size, weight),
            self.value_convolution.none_before(batch_size, weight),
            OfHeads(memory, self.num_heads),
        )

    def _outputs(self, inputs: Tensor) -> Tensor:
        return self._extend(inputs, self.initial_state(len(inputs)))[0]

    def arguments_of(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """The arguments of the kind's op for inputs (B, n, d_model), with B H rows."""
        updates, _ = self.updates(inputs, self.initial_state(len(inputs)))
        return tuple(x for x in updates.of_heads() if x is not None)

    def readings_of(self, inputs: Tensor) -> Tensor:
        state = self.initial_state(len(inputs))
        return self._read(self.updates(inputs, state)[0], state.memory)[0]

    def step(self, inputs: Tensor, state: DeltaState) -> tuple[Tensor, DeltaState]:
        check_shape("inputs", inputs, "B", self.model_size)
        outputs, state = self._extend(inputs.unsqueeze(1), state)
        return outputs.squeeze(1), state

    def extend(self, inputs: Tensor, state: DeltaState) -> tuple[Tensor, DeltaState]:
        check_shape("inputs", inputs, "B", "n", self.model_size)
        return self._extend(inputs, state)

    def _extend(self, inputs: Tensor, state: DeltaState) -> tuple[Tensor, DeltaState]:
        updates, before = self.updates(inputs, state)
        readings, memory = self._read(updates, state.memory)
        return self._output(readings, inputs), DeltaState(*before, memory)

    def updates(self, inputs: Tensor, state: DeltaState) -> tuple[Updates, tuple[Tensor, Tensor, Tensor]]:
        """What inputs (B, n, d_model) write and ask after a state, and the last inputs of its convolutions."""
        if len(inputs) != len(state.queries):
            raise ValueError(f"inputs: expected {len(state.queries)} rows, as the state has, got {len(inputs)}")
        queries, queries_before = self.query_convolution(self.queries(inputs), state.queries)
        keys, keys_before = self.key_convolution(self.keys(inputs), state.keys)
        values, values_before = self.value_convolution(self.values(inputs), state.values)
        by_update = (self.num_updates, self.num_heads)
        updates = Updates(
            _of_length_1(at_least_float32(queries).unflatten(2, (self.num_heads, self.key_size))),
            _of_length_1(at_least_float32(keys).unflatten(2, (*by_update, self.key_size))),
            at_least_float32(values).unflatten(2, (*by_update, self.value_size)),
            self.beta_scale * at_least_float32(self.strengths(inputs)).sigmoid().unflatten(2, by_update),
            self._log_decays(inputs),
        )
        return updates, (queries_before, keys_before, values_before)

    def _log_decays(self, inputs: Tensor) -> Tensor | None:
        if self.decays is None or self.log_rates is None or self.decay_bias is None:
            return None
        return -self.log_rates.exp() * softplus(at_least_float32(self.decays(inputs)) + self.decay_bias)

    def _read(self, updates: Updates, memory: OfHeads) -> tuple[Tensor, OfHeads]:
        """The readings o_t, (B, n, H, v), and the memory after them."""
        readings, rows = memory.rows.extend(*updates.of_heads())
        return self._by_head(readings), OfHeads(rows, self.num_heads)

    def _by_head(self, readings: Tensor) -> Tensor:
        """Readings of B H rows, as (B, n, H, v)."""
        return readings.unflatten(0, (-1, self.num_heads)).movedim(1, 2)

    def _output(self, readings: Tensor, inputs: Tensor) -> Tensor:
        normalised = self.norm * readings * (readings.square().mean(-1, keepdim=True) + _NORM_EPSILON).rsqrt()
        together = normalised.flatten(2).to(inputs.dtype)
        if self.gates is not None:
            together = together * silu(self.gates(inputs))
        output: Tensor = self.output(together)
        return output


def _of_length_1(vectors: Tensor) -> Tensor:
    return vectors * (vectors.square().sum(-1, keepdim=True) + _LENGTH_EPSILON).rsqrt()
