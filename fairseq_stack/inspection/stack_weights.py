"""What nondeterministic stack attention looks at: the weights W of the pushed vectors in each reading."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from fairseq_stack.errors import UserError
from fairseq_stack.hub.interface import Hub, LanguageModelHub, require_lengths
from fairseq_stack.modules import AutomatonStackAttention, StackLSTM


@contextmanager
def recorded_stack_weights(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Record the weights of every nondeterministic stack attention and stack of an LSTM in ``model`` within the block.

    Yields:
        A mapping that each call of the model fills: from the sublayer's name in ``model`` to weights (B, n, n + 1),
        summed over states and stack symbols. ``weights[b, t - 1, i]`` is the share of the reading after t inputs that
        comes from the vector pushed at input i (0: the bottom of the stack); over i they sum to 1.
    """
    weights: dict[str, Tensor] = {}

    def record_attention(name: str) -> Any:
        def hook(attention: AutomatonStackAttention, inputs: tuple[Tensor, ...]) -> None:
            weights[name] = _stack_weights(attention, *inputs)

        return hook

    def record_stacks(name: str) -> Any:
        def hook(lstm: StackLSTM, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, Any]) -> None:
            for number, stack in enumerate(lstm.stacks):
                if isinstance(stack, AutomatonStackAttention):  # whose inputs are the hidden states
                    weights[f"{name}.stacks.{number}"] = _stack_weights(stack, outputs[0])

        return hook

    handles = []
    for name, module in model.named_modules():
        if isinstance(module, AutomatonStackAttention):
            handles.append(module.register_forward_pre_hook(record_attention(name)))
        elif isinstance(module, StackLSTM):
            handles.append(module.register_forward_hook(record_stacks(name)))
    try:
        yield weights
    finally:
        for handle in handles:
            handle.remove()


@torch.no_grad()
def _stack_weights(attention: AutomatonStackAttention, inputs: Tensor) -> Tensor:
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


@torch.no_grad()
def stack_weights(hub: Hub, sentence: str, translation: str | None = None) -> list[StackWeights]:
    """The weights of every nondeterministic stack attention of a model on a given sentence.

    Args:
        hub: what ``from_pretrained`` returns, with one model.
        sentence: the sentence that a translation model translates, or that a language model scores.
        translation: the decoder's input (default: the translation that beam search finds); not for language models.

    Raises:
        UserError: the sentence is longer than the model accepts, or a language model is given a translation.
    """
    (model,) = hub.models
    source = hub.encode(sentence)
    if isinstance(hub, LanguageModelHub):
        if translation is not None:
            raise UserError("a language model reads a sentence and no translation")
        require_lengths([source], hub.max_positions)
        read = {"decoder": (source.roll(1), hub.src_dict)}
    else:
        target = (
            hub.generate(source, beam=4, max_len_a=1.5, max_len_b=10)[0]["tokens"]
            if translation is None
            else hub.encode_target(translation)
        )
        for tokens, limit in zip((source, target), hub.max_positions, strict=True):
            require_lengths([tokens], limit)
        read = {"encoder": (source, hub.src_dict), "decoder": (target.roll(1), hub.tgt_dict)}  # begins with </s>
    tensors = [tokens.to(hub.device)[None] for tokens, _ in read.values()]
    lengths = torch.tensor([len(source)], device=hub.device)
    with recorded_stack_weights(model) as recorded:
        model(tensors[0], src_lengths=lengths, **({"prev_output_tokens": tensors[1]} if len(tensors) > 1 else {}))
    found = []
    for name, weights in recorded.items():
        tokens, dictionary = read[name.partition(".")[0]]
        unread = len(tokens) - weights.size(1)  # an LSTM does not read the beginning
        inputs = tuple(dictionary[token] for token in tokens.tolist()[unread:])
        found.append(StackWeights(name.partition(".self_attn")[0], inputs, weights[0].cpu()))
    return found
