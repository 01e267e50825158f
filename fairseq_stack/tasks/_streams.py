"""Text as one stream of tokens, and the segments in which parallel rows of it are read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from fairseq.data import Dictionary, FairseqDataset
from torch import Tensor
from torch.utils.data import Dataset

from fairseq_stack.errors import UserError

EOS_WORD = "<eos>"
"""The word that a stream has at the ends of its sentences (``fairseq-stack prepare lm --stream``)."""


def end_of_sentence(dictionary: Dictionary) -> int:
    """The token that ends sentences in a stream: ``<eos>`` if it is a word of the dictionary, otherwise ``</s>``."""
    return int(dictionary.index(EOS_WORD)) if EOS_WORD in dictionary else int(dictionary.eos())


class TextStream(FairseqDataset):
    """A text as one stream: its lines, one after the other.

    Each line ends with the ``</s>`` that fairseq writes there, which is a token of the stream. After the word ``<eos>``
    it is left out, as the sentence has been ended.

    Args:
        name: the name of the split, for messages.
        lines: the tokens of each line, and at its end ``</s>``.
        dictionary: the dictionary.
    """

    def __init__(self, name: str, lines: Iterable[Tensor], dictionary: Dictionary) -> None:
        super().__init__()
        self.name = name
        self.padding = int(dictionary.pad())
        self.end = end_of_sentence(dictionary)
        lines = [line.long() for line in lines]
        if not lines:
            raise UserError(f"{name}: expected text, got no line")
        tokens = torch.cat(lines)
        if self.end != dictionary.eos():
            ended = tokens[:-1].eq(self.end) & tokens[1:].eq(dictionary.eos())
            tokens = tokens[torch.cat([ended.new_ones(1), ~ended])]
        self.tokens = tokens

    def __len__(self) -> int:
        return len(self.tokens)


class Segments(Dataset[dict[str, Any]]):
    """A stream in rows that are read side by side, each in segments.

    The stream is cut into B rows of equal length; if it cannot be divided, the last ones are shorter. Item k is a
    batch for fairseq: the tokens k D..(k + 1) D - 1 of each row as ``target``, each predicted from the token before it
    in the stream. What precedes the stream is the end of a sentence. Each token is thus predicted once.

    Args:
        stream: the stream.
        batch_size: B.
        length: D; the last segment may be shorter.

    Raises:
        UserError: the stream is too short.
    """

    def __init__(self, stream: TextStream, batch_size: int, length: int) -> None:
        tokens = stream.tokens
        if len(tokens) < batch_size:
            raise UserError(
                f"{stream.name}: expected at least {batch_size:,} tokens with --batch-size {batch_size}, got "
                f"{len(tokens):,}"
            )
        row = -(-len(tokens) // batch_size)
        padding = tokens.new_full((batch_size * row - len(tokens),), stream.padding)
        before = torch.cat([tokens.new_tensor([stream.end]), tokens[:-1]])
        self.padding = stream.padding
        self.length = length
        self.targets, self.inputs = (torch.cat([part, padding]).view(batch_size, row) for part in (tokens, before))
        self.num_tokens = int(self.targets.ne(stream.padding).sum())

    def __len__(self) -> int:
        return -(-self.targets.size(1) // self.length)

    def __getitem__(self, number: int) -> dict[str, Any]:
        place = slice(number * self.length, (number + 1) * self.length)
        inputs, targets = self.inputs[:, place].contiguous(), self.targets[:, place].contiguous()
        lengths = targets.ne(self.padding).sum(1)
        return {
            "id": torch.arange(len(inputs)),
            "nsentences": len(inputs),
            "ntokens": int(lengths.sum()),
            "net_input": {"src_tokens": inputs, "src_lengths": lengths},
            "target": targets,
            "segment": number,
            "num_segments": len(self),
        }
