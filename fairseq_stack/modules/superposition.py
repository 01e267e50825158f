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
        push_inputs: push v_t = x_t, as Joulin & Mikolov do with the hidden state; there is no W_v.
        options: ``output`` and ``bias``, see :class:`StackAttention`.

    Raises:
        ValueError: inputs are to be pushed, and ``size`` is not ``model_size``.
    """

    def __init__(
        self,
        model_size: int,
        size: int,
        value_activation: ValueActivation = "sigmoid",
        *,
        push_inputs: bool = False,
        **options: bool,
    ) -> None:
        if push_inputs and size != model_size:
            raise ValueError(f"size: expected {model_size}, the size of the inputs that are pushed, got {size}")
        super().__init__(model_size, 3, size, size, value_activation, learned_values=not push_inputs, **options)
        self.push_inputs = push_inputs

    def activated(self, values: Tensor) -> Tensor:
        return values if self.push_inputs else super().activated(values)

    def released_activation(self, values: Tensor) -> Tensor:
        return values

    def readings(self, actions: Tensor, values: Tensor) -> Tensor:
        return superposition_stack(actions.softmax(-1), values)

    def step_reading(
        self, actions: Tensor, values: Tensor, state: SuperpositionStackState
    ) -> tuple[Tensor, SuperpositionStackState]:
        return state.step(actions.softmax(-1), values)

    def initial_state(self, batch_size: int) -> SuperpositionStackState:
        weight = self.actions.weight
        return SuperpositionStackState.initial(
            batch_size=batch_size,
            size=self.value_size,
            dtype=computation_dtype(weight.dtype),
            device=weight.device,
        )
