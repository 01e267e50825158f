"""Attention by the stratification stack, which no paper describes."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from fairseq_stack.modules.stack_attention import StackAttention, ValueActivation
from fairseq_stack.ops import StratificationStackState, computation_dtype, stratification_stack


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

    def released_activation(self, values: Tensor) -> Tensor:
        return values.sigmoid()

    def readings(self, actions: Tensor, values: Tensor) -> Tensor:
        pop, push = actions.sigmoid().unbind(-1)
        return stratification_stack(pop, push, values)

    def step_reading(
        self, actions: Tensor, values: Tensor, state: StratificationStackState
    ) -> tuple[Tensor, StratificationStackState]:
        pop, push = actions.sigmoid().unbind(-1)
        return state.step(pop, push, values)

    def initial_state(self, batch_size: int) -> StratificationStackState:
        weight = self.actions.weight
        return StratificationStackState.initial(
            batch_size=batch_size,
            size=self.value_size,
            dtype=computation_dtype(weight.dtype),
            device=weight.device,
        )
