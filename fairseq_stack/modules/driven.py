"""The stacks of a model, and what drives them while the model reads a batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from torch import Tensor, nn

from fairseq_stack.modules.stack_lstm import StackLSTM
from fairseq_stack.modules.stateful_attention import StatefulAttention

DrivenStacks = dict[str, tuple[StatefulAttention, Tensor]]
"""By the name of the layer: the stack, and its inputs (B, n, d_model)."""


@contextmanager
def driven_stacks(model: nn.Module) -> Iterator[DrivenStacks]:
    """Within the block, a call of the model records each stack and its inputs, of which gradients are taken as usual.

    What a looped transformer calls again is recorded again, with the number of the loop in the name.
    """
    recorded: DrivenStacks = {}

    def of_attention(name: str, attention: StatefulAttention, inputs: tuple[Tensor, ...]) -> None:
        loop = sum(stack is attention for stack, _ in recorded.values()) + 1
        layer = name.partition(".self_attn")[0]
        recorded[layer if loop == 1 else f"{layer}.loop-{loop}"] = attention, inputs[0]

    def of_lstm(name: str, lstm: StackLSTM, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, Any]) -> None:
        for number, stack in enumerate(lstm.stacks):
            assert isinstance(stack, StatefulAttention)
            recorded[f"{name}.stacks.{number}"] = stack, outputs[0][..., : lstm.hidden_size]  # hidden states drive it

    controlled = {id(stack) for lstm in model.modules() if isinstance(lstm, StackLSTM) for stack in lstm.stacks}
    with ExitStack() as hooks:
        for name, module in model.named_modules():
            if isinstance(module, StackLSTM):
                hooks.enter_context(module.register_forward_hook(partial(of_lstm, name)))
            elif isinstance(module, StatefulAttention) and id(module) not in controlled:
                hooks.enter_context(module.register_forward_pre_hook(partial(of_attention, name)))
        yield recorded
