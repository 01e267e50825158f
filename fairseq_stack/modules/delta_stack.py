"""DeltaStack: attention by the delta rule that writes what a pointer stack does not say."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from fairseq_stack.modules.delta import DeltaAttention, DeltaState, OfHeads, Updates, as_rows
from fairseq_stack.modules.inspected import InspectedStack
from fairseq_stack.modules.stateful_attention import at_least_float32
from fairseq_stack.ops import PointerStackState, pointer_stack
from fairseq_stack.ops._arguments import check_sizes
from fairseq_stack.ops.pointer import positions

Reading = Literal["previous", "current"]


@dataclass(frozen=True, eq=False)
class DeltaStackState(DeltaState):
    """The same, and a stack for each head.

    Attributes:
        stack: M_t and z_t of all heads.
        reading: r_t, (B, H, v).
    """

    stack: OfHeads
    reading: Tensor


class DeltaStackAttention(DeltaAttention):
    """DeltaStack: each head has a pointer stack (:func:`fairseq_stack.ops.pointer_stack`) besides its memory.

    The stack pushes the values v_t of the head, and what its reading r_{t-1} says is subtracted from what the memory is
    to hold:

        (p_t, u_t, no-op) = softmax(W_a x_t)  for each head,   r_t = M_t^T a_t / sqrt(C),  the memory gets v_t - r_{t-1}

    Args:
        model_size: d_model.
        num_heads: H.
        key_size: k, of a head.
        value_size: v, of a head.
        num_cells: C, of a head's stack. The parameters do not depend on it.
        reading: which stack reading is subtracted: r_{t-1} (``"previous"``, as released), which knows nothing of the
            action at t, or r_t (``"current"``).
        kappa: where kappa begins, which says how sharp addresses are.
        frozen_kappa: do not train kappa.
        clamped: see :func:`fairseq_stack.ops.pointer_stack`.
        kept_scale: keep the first C, of the factor 1 / sqrt(C), among the parameters, so that a model with more cells
            reads the same numbers.
        action_gain: by how much W_a is multiplied at the beginning.
        options: ``beta_scale``, ``convolution`` and ``output_gate`` of :class:`DeltaAttention`.
    """

    cells_of_scale: Tensor | None

    def __init__(
        self,
        model_size: int,
        num_heads: int,
        key_size: int,
        value_size: int,
        num_cells: int,
        *,
        reading: Reading = "previous",
        kappa: float = 2.0,
        frozen_kappa: bool = False,
        clamped: bool = False,
        kept_scale: bool = False,
        action_gain: float = 1.0,
        **options: Any,
    ) -> None:
        if reading not in ("previous", "current"):
            raise ValueError(f"reading: expected 'previous' or 'current', got {reading!r}")
        check_sizes(num_cells=num_cells)
        super().__init__(model_size, num_heads, key_size, value_size, **options)
        self.num_cells, self.reading, self.clamped = num_cells, reading, clamped
        self.first_kappa, self.action_gain = kappa, action_gain
        self.actions = nn.Linear(model_size, 3 * num_heads, bias=False)
        self.kappa = nn.Parameter(torch.empty(()), requires_grad=not frozen_kappa)
        self.register_buffer("cells_of_scale", torch.tensor(float(num_cells)) if kept_scale else None)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        super().reset_parameters()
        self.actions.weight.mul_(self.action_gain)
        self.kappa.fill_(self.first_kappa)

    def initial_state(self, batch_size: int) -> DeltaStackState:
        kappa = at_least_float32(self.kappa).expand(batch_size * self.num_heads)
        stack = PointerStackState.initial(kappa, size=self.value_size, cells=self.num_cells, clamped=self.clamped)
        reading = kappa.new_zeros(batch_size, self.num_heads, self.value_size)
        before = vars(super().initial_state(batch_size))
        return DeltaStackState(**before, stack=OfHeads(stack, self.num_heads), reading=reading)

    def readings_of(self, inputs: Tensor) -> Tensor:
        """The stack readings r_t."""
        state = self.initial_state(len(inputs))
        return self._read_stacks(inputs, self.updates(inputs, state)[0], state)[0]

    def _extend(self, inputs: Tensor, state: DeltaState) -> tuple[Tensor, DeltaStackState]:
        assert isinstance(state, DeltaStackState)
        updates, before = self.updates(inputs, state)
        readings, stack = self._read_stacks(inputs, updates, state)
        known = torch.cat([state.reading.unsqueeze(1), readings], 1)
        subtracted = known[:, :-1] if self.reading == "previous" else readings
        written = updates._replace(values=updates.values - subtracted.unsqueeze(2))
        memory_readings, memory = self._read(written, state.memory)
        outputs = self._output(memory_readings, inputs)
        return outputs, DeltaStackState(*before, memory=memory, stack=stack, reading=known[:, -1])

    def _read_stacks(self, inputs: Tensor, updates: Updates, state: DeltaStackState) -> tuple[Tensor, OfHeads]:
        """The stack readings r_t, (B, n, H, v), and the stacks after them."""
        push, pop, values, kappa = self._actions_and_values(inputs, updates)
        readings, rows = replace(state.stack.rows, kappa=kappa).extend(push, pop, values)
        cells = self.cells_of_scale
        scale = math.sqrt(self.num_cells) if cells is None else cells.to(readings.dtype).sqrt()
        return self._by_head(readings / scale), OfHeads(rows, self.num_heads)

    def arguments_of(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """The arguments of :func:`fairseq_stack.ops.pointer_stack`, with B H rows."""
        return self._actions_and_values(inputs, self.updates(inputs, self.initial_state(len(inputs)))[0])

    def _actions_and_values(self, inputs: Tensor, updates: Updates) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        actions = at_least_float32(self.actions(inputs)).unflatten(2, (self.num_heads, 3)).softmax(-1)
        push, pop, _ = as_rows(actions, 2).unbind(-1)
        return push, pop, as_rows(updates.values.squeeze(2), 2), at_least_float32(self.kappa).expand(len(push))

    @torch.no_grad()
    def inspected_heads(
        self, inputs: Tensor, layer: str, symbols: tuple[str, ...], num_runs: int = 0
    ) -> list[InspectedStack]:
        """Of each head: the weights of the pushed vectors in r_t before it is scaled, the actions and the pointer."""
        push, pop, _, kappa = (x.double() for x in self.arguments_of(inputs[None]))
        units = torch.eye(len(inputs), dtype=torch.float64, device=inputs.device).expand(len(push), -1, -1)
        weights = pointer_stack(push, pop, units, kappa, cells=self.num_cells, clamped=self.clamped)
        pointers = positions(push.new_zeros(len(push)), push, pop, self.num_cells, self.clamped)
        pointers = pointers.clamp(0, self.num_cells - 1)
        return [
            InspectedStack(
                f"{layer}.heads.{head}",
                symbols,
                weights[head].cpu(),
                {"push": push[head].cpu(), "no-op": (1 - push - pop)[head].cpu(), "pop": pop[head].cpu()},
                pointers=pointers[head].cpu(),
            )
            for head in range(self.num_heads)
        ]
