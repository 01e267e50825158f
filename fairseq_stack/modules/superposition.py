"""Attention by the superposition stack."""

from __future__ import annotations

import dataclasses
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import pad

from fairseq_stack.modules.inspected import InspectedStack
from fairseq_stack.modules.stack_attention import StackAttention, ValueActivation
from fairseq_stack.ops import (
    ControlledSuperposition,
    SuperpositionStackState,
    computation_dtype,
    superposition_stack,
)
from fairseq_stack.ops._arguments import check_sizes
from fairseq_stack.ops._transforms import is_transformed


class SuperpositionStackAttention(StackAttention):
    """Attention by the superposition stack of Joulin & Mikolov (2015): Eqs. 5-8, Eq. 17, Eq. 18 and Eq. 20.

    The rows of W_a are push, no-op and pop, in that order.

    Args:
        model_size: d_model.
        size: the size m of the stack vectors.
        value_activation: ``"sigmoid"`` (Eq. 17), or ``"released"``: v_t = W_v x_t.
        push_inputs: push v_t = x_t, as Joulin & Mikolov do with the hidden state; there is no W_v.
        depth_limit: how many elements the stack holds, as in DuSell & Chiang (2022): what is deeper is lost. None for a
            stack without a limit.
        options: ``output`` and ``bias``, see :class:`StackAttention`.

    Raises:
        ValueError: inputs are to be pushed, and ``size`` is not ``model_size``; or the stack is to hold no element.
    """

    def __init__(
        self,
        model_size: int,
        size: int,
        value_activation: ValueActivation = "sigmoid",
        *,
        push_inputs: bool = False,
        depth_limit: int | None = None,
        **options: bool,
    ) -> None:
        if push_inputs and size != model_size:
            raise ValueError(f"size: expected {model_size}, the size of the inputs that are pushed, got {size}")
        check_sizes(depth_limit=depth_limit)
        super().__init__(model_size, 3, size, size, value_activation, learned_values=not push_inputs, **options)
        self.push_inputs = push_inputs
        self.depth_limit = depth_limit

    def activated(self, values: Tensor) -> Tensor:
        return values if self.push_inputs else super().activated(values)

    def released_activation(self, values: Tensor) -> Tensor:
        return values

    def controlled(self) -> ControlledSuperposition | None:
        if type(self) is not SuperpositionStackAttention:
            return None
        if self.push_inputs:
            return ControlledSuperposition(self.value_size, "hidden", self.depth_limit)
        pushes: Literal["sigmoid", "identity"] = "sigmoid" if self.value_activation == "sigmoid" else "identity"
        return ControlledSuperposition(self.value_size, pushes, self.depth_limit)

    def arguments(self, actions: Tensor, values: Tensor) -> tuple[Tensor, ...]:
        return actions.softmax(-1), values

    @torch.no_grad()
    def inspected(self, inputs: Tensor, layer: str, symbols: tuple[str, ...], num_runs: int = 0) -> InspectedStack:
        units = torch.eye(len(inputs), dtype=torch.float64, device=inputs.device)[None]
        actions, _ = self.arguments(self.actions(inputs).double()[None], units)
        weights = superposition_stack(actions, units, depth_limit=self.depth_limit)
        by_name = dict(zip(("push", "no-op", "pop"), actions[0].cpu().unbind(-1), strict=True))
        return InspectedStack(layer, symbols, weights[0].cpu(), by_name)

    def readings(self, actions: Tensor, values: Tensor) -> Tensor:
        return superposition_stack(*self.arguments(actions, values), depth_limit=self.depth_limit)

    def extend_readings(
        self, actions: Tensor, values: Tensor, state: SuperpositionStackState
    ) -> tuple[Tensor, SuperpositionStackState]:
        weights, values = self.arguments(actions, values)
        batch_size, length, _ = values.shape
        begins = length > 0 and state.elements.shape[:2] == (batch_size, 0) and state.marks is None
        is_eager = not (torch.compiler.is_compiling() or is_transformed(weights, values))
        if not (begins and is_eager and bool(weights.isfinite().all() & values.isfinite().all())):
            return super().extend_readings(actions, values, state)
        # Pops bring the elements of the last stack to the top, one after the other.
        height = length if self.depth_limit is None else min(length, self.depth_limit)
        pops = weights.new_tensor([0.0, 0.0, 1.0]).expand(batch_size, height - 1, 3)
        with_pops = torch.cat([weights, pops], 1), pad(values, (0, 0, 0, height - 1))
        tops = superposition_stack(*with_pops, depth_limit=self.depth_limit)
        return tops[:, :length], dataclasses.replace(state, elements=tops[:, length - 1 :])

    def initial_state(self, batch_size: int) -> SuperpositionStackState:
        weight = self.actions.weight
        return SuperpositionStackState.initial(
            batch_size=batch_size,
            size=self.value_size,
            dtype=computation_dtype(weight.dtype),
            device=weight.device,
            depth_limit=self.depth_limit,
        )
