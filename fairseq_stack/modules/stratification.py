"""Attention by the stratification stack, which no paper describes."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from fairseq_stack.modules.inspected import InspectedStratification
from fairseq_stack.modules.stack_attention import StackAttention, ValueActivation
from fairseq_stack.ops import (
    ControlledStratification,
    StratificationStackState,
    computation_dtype,
    stratification_stack,
)


class StratificationStackAttention(StackAttention):
    """Attention by the stratification stack of Grefenstette et al. (2015), driven as in Eqs. 17, 18 and 20.

    The strengths are u_t = sigmoid(w_u x_t) of popping and d_t = sigmoid(w_d x_t) of pushing. The rows of W_a are w_u
    and w_d, in that order. In attention nothing is fed back, unlike in the models of Hao et al. (2018).

    Args:
        model_size: d_model.
        size: the size m of the stack vectors.
        value_activation: ``"sigmoid"`` (Eq. 17); ``"released"`` is the same, because no released code exists;
            ``"tanh"`` is what Grefenstette et al. (2015) do.
        options: ``output`` and ``bias``, see :class:`StackAttention`.
    """

    value_activations: ClassVar[tuple[str, ...]] = ("sigmoid", "tanh", "released")

    def __init__(
        self, model_size: int, size: int, value_activation: ValueActivation = "sigmoid", **options: bool
    ) -> None:
        super().__init__(model_size, 2, size, size, value_activation, **options)

    def activated(self, values: Tensor) -> Tensor:
        return values.tanh() if self.value_activation == "tanh" else super().activated(values)

    def controlled(self) -> ControlledStratification | None:
        if type(self) is not StratificationStackAttention:
            return None
        return ControlledStratification(self.value_size, "tanh" if self.value_activation == "tanh" else "sigmoid")

    def arguments(self, actions: Tensor, values: Tensor) -> tuple[Tensor, ...]:
        return (*actions.sigmoid().unbind(-1), values)

    @torch.no_grad()
    def inspected(
        self, inputs: Tensor, layer: str, symbols: tuple[str, ...], num_runs: int = 0
    ) -> InspectedStratification:
        units = torch.eye(len(inputs), dtype=torch.float64, device=inputs.device)[None]
        pop, push, _ = self.arguments(self.actions(inputs).double()[None], units)
        weights = stratification_stack(pop, push, units)
        # What is read from a stack of which everything is read.
        strengths = stratification_stack(pop, push, units, read_strength=1.0 + len(inputs))
        actions = {"pop": pop[0].cpu(), "push": push[0].cpu()}
        return InspectedStratification(layer, symbols, weights[0].cpu(), actions, strengths[0].cpu())

    def readings(self, actions: Tensor, values: Tensor) -> Tensor:
        return stratification_stack(*self.arguments(actions, values))

    def initial_state(self, batch_size: int) -> StratificationStackState:
        weight = self.actions.weight
        return StratificationStackState.initial(
            batch_size=batch_size,
            size=self.value_size,
            dtype=computation_dtype(weight.dtype),
            device=weight.device,
        )
