"""The nondeterministic stacks whose runs a loss depends on."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from fairseq_stack.errors import UserError
from fairseq_stack.modules import AutomatonStackAttention, DrivenStacks


def driven_automata(stacks: DrivenStacks, criterion: str) -> Iterator[tuple[AutomatonStackAttention, Tensor]]:
    """The nondeterministic stacks among these, with their inputs.

    Raises:
        UserError: there are none, or their inputs have no gradients.
    """
    automata = [(stack, inputs) for stack, inputs in stacks.values() if isinstance(stack, AutomatonStackAttention)]
    if not automata:
        raise UserError(f"--criterion {criterion} needs a nondeterministic stack, such as nd-3-3-5")
    for stack, inputs in automata:
        if torch.is_grad_enabled() and not inputs.requires_grad:  # layers run without autograd and again later
            raise UserError(f"--criterion {criterion} does not work with --checkpoint-activations")
        yield stack, inputs
