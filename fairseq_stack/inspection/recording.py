"""What drives each stack of a trained model while the model reads a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from fairseq_stack.errors import UserError
from fairseq_stack.hub.interface import Hub, LanguageModelHub
from fairseq_stack.inspection.sentences import Sentence, sentence_of_text
from fairseq_stack.modules import StackAttention, StackLSTM

Record = Callable[[str, StackAttention, Tensor], None]
"""Takes the name of a stack in the model, the stack, and its inputs (B, n, d_model)."""


@contextmanager
def watched_stacks(model: nn.Module, record: Record) -> Iterator[None]:
    """Within the block, a call of the model calls ``record`` for each stack attention and each stack of an LSTM."""

    def of_attention(name: str) -> Any:
        def hook(attention: StackAttention, inputs: tuple[Tensor, ...]) -> None:
            record(name, attention, inputs[0])

        return hook

    def of_stacks(name: str) -> Any:
        def hook(lstm: StackLSTM, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, Any]) -> None:
            for number, stack in enumerate(lstm.stacks):
                assert isinstance(stack, StackAttention)
                record(f"{name}.stacks.{number}", stack, outputs[0])  # hidden states drive it

        return hook

    driven = {id(stack) for lstm in model.modules() if isinstance(lstm, StackLSTM) for stack in lstm.stacks}
    handles = []
    for name, module in model.named_modules():
        if isinstance(module, StackLSTM):
            handles.append(module.register_forward_hook(of_stacks(name)))
        elif isinstance(module, StackAttention) and id(module) not in driven:
            handles.append(module.register_forward_pre_hook(of_attention(name)))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@dataclass(frozen=True, eq=False)
class DrivenStack:
    """A stack, and what drives it while the model reads a sentence.

    Attributes:
        layer: the layer's name in the model, such as ``decoder.layers.2``.
        symbols: what the layer reads: in an encoder the sentence and its end, in a decoder its beginning and the
            sentence, in an LSTM the sentence.
        stack: the stack.
        inputs: its inputs, (n, d_model), one for each of the symbols.
    """

    layer: str
    symbols: tuple[str, ...]
    stack: StackAttention
    inputs: Tensor

    @property
    def predicts(self) -> bool:
        """Whether words are predicted with its readings: not in an encoder."""
        return self.layer.startswith("decoder.")

    @property
    def delay(self) -> int:
        """How many symbols after symbol t the first one is that is predicted with r_t.

        It is 1 in a decoder's attention, and 2 in an LSTM, which gets the reading with the next input.
        """
        return 2 if isinstance(self.stack.output, nn.Identity) else 1


@torch.no_grad()
def read_sentence(hub: Hub, sentence: str | Sentence, translation: str | None = None) -> list[DrivenStack]:
    """Have a model read a sentence.

    Args:
        hub: what ``from_pretrained`` returns, with one model.
        sentence: the sentence that a translation model translates, or that a language model scores.
        translation: the decoder's input (default: the translation that beam search finds); not for language models, and
            not for a :class:`Sentence`, which has its own.

    Returns:
        All stacks of the model.

    Raises:
        UserError: a sentence of text has a word that the dictionary lacks, the sentence is longer than the model
            accepts, or empty in an LSTM, a language model is given a translation, or there are several models.
    """
    if len(hub.models) != 1:
        raise UserError(f"expected one checkpoint, got an ensemble of {len(hub.models)}; give one of them")
    (model,) = hub.models
    if isinstance(sentence, str):
        sentence = sentence_of_text(hub, sentence, translation)
    source, target = sentence.source, sentence.target
    if isinstance(hub, LanguageModelHub):
        _require_length(sentence.name, source, hub.max_positions)
        read = {"decoder": (source.roll(1), hub.src_dict)}
    else:
        source_limit, target_limit = hub.max_positions
        _require_length(sentence.name, source, source_limit)
        if target is None:
            target = hub.generate(source, beam=4, max_len_a=1.5, max_len_b=10)[0]["tokens"]
        _require_length(f"the translation of {sentence.name}", target, target_limit)
        read = {"encoder": (source, hub.src_dict), "decoder": (target.roll(1), hub.tgt_dict)}  # begins with </s>
    tensors = [tokens.to(hub.device)[None] for tokens, _ in read.values()]
    lengths = torch.tensor([len(source)], device=hub.device)
    found: dict[str, tuple[StackAttention, Tensor]] = {}

    def record(name: str, stack: StackAttention, inputs: Tensor) -> None:
        found[name] = stack, inputs[0]

    with watched_stacks(model, record):
        model(tensors[0], src_lengths=lengths, **({"prev_output_tokens": tensors[1]} if len(tensors) > 1 else {}))
    driven = []
    for name, (stack, inputs) in found.items():
        tokens, dictionary = read[name.partition(".")[0]]
        unread = len(tokens) - len(inputs)  # an LSTM does not read the beginning
        if not len(inputs):
            raise UserError(
                f"{sentence.name} is empty; expected a word, since the model does not read {dictionary.eos_word}"
            )
        symbols = tuple(dictionary[token] for token in tokens.tolist()[unread:])
        driven.append(DrivenStack(name.partition(".self_attn")[0], symbols, stack, inputs))
    return driven


def _require_length(name: str, tokens: Tensor, limit: int) -> None:
    if len(tokens) > limit:
        raise UserError(f"{name} has {len(tokens):,} tokens; the model accepts at most {limit:,}")
