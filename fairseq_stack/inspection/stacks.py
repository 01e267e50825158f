"""What the stacks of a trained model do while it reads a sentence, in numbers.

Each stack says it itself: :meth:`fairseq_stack.modules.StatefulAttention.inspected_heads`.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from fairseq_stack.errors import UserError
from fairseq_stack.hub.interface import Hub, LanguageModelHub, TransductionHub
from fairseq_stack.inspection.sentences import Sentence, sentence_of_text
from fairseq_stack.modules import InspectedStack, StatefulAttention, driven_stacks
from fairseq_stack_preprocess.progress import say


@dataclass(frozen=True, eq=False)
class DrivenStack:
    """A stack, and what drives it while the model reads a sentence.

    Attributes:
        layer: the layer's name in the model, such as ``decoder.layers.2``.
        symbols: what the layer reads: in an encoder the sentence and its end, in a decoder its beginning and the
            sentence, in an LSTM the sentence.
        stack: the stack.
        inputs: its inputs, (n, d_model), one for each of the symbols.
        in_output: whether the output layer of an LSTM reads it.
    """

    layer: str
    symbols: tuple[str, ...]
    stack: StatefulAttention
    inputs: Tensor
    in_output: bool = False

    @property
    def predicts(self) -> bool:
        """Whether words are predicted with its readings: not in an encoder."""
        return self.layer.startswith("decoder.")

    @property
    def delay(self) -> int:
        """How many symbols after symbol t the first one is that is predicted with r_t.

        It is 1 in a decoder's attention, and 2 in an LSTM that gets the reading only with the next input.
        """
        return 2 if isinstance(self.stack.output, nn.Identity) and not self.in_output else 1

    def inspected(self, num_runs: int = 0) -> list[InspectedStack]:
        """What the stack of each head does; if its kind does not say, nothing and a line on standard error."""
        stacks = self.stack.inspected_heads(self.inputs, self.layer, self.symbols, num_runs)
        if not stacks:
            _say_silent(self.layer, type(self.stack).__name__)
        return stacks


@functools.cache  # once, and not for every sentence
def _say_silent(layer: str, kind: str) -> None:
    say(f"{layer} is left out: {kind} does not say what its stack does (StatefulAttention.inspected)")


def inspect_stacks(hub: Hub, sentence: str | Sentence, *, num_runs: int = 1) -> list[InspectedStack]:
    """What the stacks of a model do while it reads a sentence.

    Args:
        hub: what ``from_pretrained`` returns, with one model.
        sentence: as for :func:`read_sentence`.
        num_runs: the number of best runs of each nondeterministic stack.

    Returns:
        All stacks whose kinds say what they do; none for a model without stacks.

    Raises:
        UserError: see :func:`read_sentence`.
    """
    return [stack for driven in read_sentence(hub, sentence) for stack in driven.inspected(num_runs)]


@torch.no_grad()
def read_sentence(hub: Hub, sentence: str | Sentence) -> list[DrivenStack]:
    """Have a model read a sentence.

    Args:
        hub: what ``from_pretrained`` returns, with one model.
        sentence: the sentence that a translation model translates, or that a language model scores.

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
        sentence = sentence_of_text(hub, sentence)
    source, target = sentence.source, sentence.target
    if isinstance(hub, LanguageModelHub):
        _require_length(sentence.name, source, hub.max_positions)
        read = {"decoder": (source.roll(1), hub.src_dict)}
    elif isinstance(hub, TransductionHub):
        source = source[source.ne(hub.src_dict.eos())]
        _require_length(sentence.name, source, hub.max_positions)
        read = {"encoder": (source, hub.src_dict)}
    else:
        source_limit, target_limit = hub.max_positions
        _require_length(sentence.name, source, source_limit)
        if target is None:
            target = hub.generate(source, beam=4, max_len_a=1.5, max_len_b=10)[0]["tokens"]
        _require_length(f"the translation of {sentence.name}", target, target_limit)
        read = {"encoder": (source, hub.src_dict), "decoder": (target.roll(1), hub.tgt_dict)}  # begins with </s>
    tensors = [tokens.to(hub.device)[None] for tokens, _ in read.values()]
    lengths = torch.tensor([len(source)], device=hub.device)
    with driven_stacks(model) as recorded:
        model(tensors[0], src_lengths=lengths, **({"prev_output_tokens": tensors[1]} if len(tensors) > 1 else {}))
    driven = []
    for name, (stack, (inputs,)) in recorded.items():
        tokens, dictionary = read[name.partition(".")[0]]
        unread = len(tokens) - len(inputs)  # an LSTM does not read the beginning
        if not len(inputs):
            raise UserError(
                f"{sentence.name} is empty; expected a word, since the model does not read {dictionary.eos_word}"
            )
        symbols = tuple(dictionary[token] for token in tokens.tolist()[unread:])
        controller = model.get_submodule(name.rpartition(".stacks")[0])
        driven.append(DrivenStack(name, symbols, stack, inputs, getattr(controller, "reading_in_output", False)))
    return driven


def _require_length(name: str, tokens: Tensor, limit: int) -> None:
    if len(tokens) > limit:
        raise UserError(f"{name} has {len(tokens):,} tokens; the model accepts at most {limit:,}")
