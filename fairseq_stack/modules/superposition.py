"""Attention by the superposition stack."""

from __future__ import annotations

from torch import Tensor

from fairseq_stack.modules.stack_attention import StackAttention, ValueActivation
from fairseq_stack.ops import SuperpositionStackState, computation_dtype, superposition_stack


class SuperpositionStackAttention(StackAttention):
    """Attention by the superposition stack of Joulin & Mikolov (2015): Eqs. 5-8, 17, 18 and 20.

    The rows of W_a are push, no-op and pop, in that order.

    Args:
        model_size: d_model.
        size: the size m of the stack vectors.
        value_activation: ``"sigmoid"`` (Eq. 17), or ``"released"``: v_t = W_v x_t.
        options: ``output`` and ``bias``, see :class:`StackAttention`.
    """

    def __init__(
        self, model_size: int, size: int, value_activation: ValueActivation = "sigmoid", **options: bool
    ) -> None:
        super().__init__(model_size, 3, size, size, value_activation, **options)

    def released_activation(self, values: Tensor) -> Tensor:
        return values

    def readings(self, actions: Tensor, values: Tensor) -> Tensor:
        return superposition_stack(actions.softmax(-1), values)

    def step_reading(
        self, actions: Tensor, values: Tensor, state: SuperpositionStackState
    ) -> tuple[Tensor, SuperpositionStackState]:
        return state.step(actions.softmax(-1), values)

    def initial_state(self, batch_size: int) -> SuperpositionStackState:
        weight = self.values.weight
        return SuperpositionStackState.initial(
            batch_size=batch_size,
            size=self.value_size,
            dtype=computation_dtype(weight.dtype),
            device=weight.device,
        )
