"""What nondeterministic stack attention looks at: the weights W of the pushed vectors in each reading."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from fairseq_stack.hub.interface import Hub
from fairseq_stack.inspection.recording import read_sentence, watched_stacks
from fairseq_stack.inspection.sentences import Sentence
from fairseq_stack.modules import AutomatonStackAttention, StackAttention


@contextmanager
def recorded_stack_weights(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Record the weights of every nondeterministic stack attention and stack of an LSTM in ``model`` within the block.

    Yields:
        A mapping that each call of the model fills: from the sublayer's name in ``model`` to weights (B, n, n + 1),
        summed over states and stack symbols. ``weights[b, t - 1, i]`` is the share of the reading after t inputs that
        comes from the vector pushed at input i (0: the bottom of the stack); over i they sum to 1.
    """
    weights: dict[str, Tensor] = {}

    def record(name: str, stack: StackAttention, inputs: Tensor) -> None:
        if isinstance(stack, AutomatonStackAttention):
            weights[name] = weights_of_automaton(stack, inputs)

    with watched_stacks(model, record):
        yield weights


@torch.no_grad()
def weights_of_automaton(attention: AutomatonStackAttention, inputs: Tensor) -> Tensor:
    """The weights (B, n, n + 1) for inputs (B, n, d_model), summed over states and stack symbols."""
    batch_size, length, _ = inputs.shape
    # Readings are linear in v_0..v_n: with unit vectors in their place, they are their own weights.
    units = torch.eye(length + 1, dtype=torch.float64, device=inputs.device)
    averages = attention.averages(attention.actions(inputs).double(), units[1:].expand(batch_size, -1, -1), units[0])
    return averages.sum((-3, -2))


@dataclass(frozen=True)
class StackWeights:
    """What one layer's stack attention looks at while it reads a sentence.

    Attributes:
        layer: the layer's name in the model, such as ``decoder.layers.2``.
        inputs: what the layer reads: in an encoder the sentence and its end, in a decoder its beginning and the
            sentence, in an LSTM the sentence.
        weights: (n, n + 1) for n inputs: row t is the reading after input t, column 0 belongs to the bottom of the
            stack, and column i to the vector pushed at input i. Each row sums to 1.
    """

    layer: str
    inputs: tuple[str, ...]
    weights: Tensor


def stack_weights(hub: Hub, sentence: str | Sentence, translation: str | None = None) -> list[StackWeights]:
    """The weights of every nondeterministic stack attention of a model on a given sentence.

    Args:
        hub: what ``from_pretrained`` returns, with one model.
        sentence: as for :func:`~fairseq_stack.inspection.recording.read_sentence`.
        translation: likewise.

    Raises:
        UserError: see :func:`~fairseq_stack.inspection.recording.read_sentence`.
    """
    return [
        StackWeights(driven.layer, driven.symbols, weights_of_automaton(driven.stack, driven.inputs[None])[0].cpu())
        for driven in read_sentence(hub, sentence, translation)
        if isinstance(driven.stack, AutomatonStackAttention)
    ]
