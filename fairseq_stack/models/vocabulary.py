"""Vocabularies without symbols that cannot occur: compact embeddings and output layers.

A fairseq dictionary always has <s>, <pad>, </s> and <unk>, and may be padded with ``madeupword`` entries. Most
of these cannot occur, yet a stock model gives them embeddings and probability. A compact model keeps rows for

- the *symbols*: the words of the dictionary, and <unk> if it can occur;
- EOS, as the last symbol of the encoder's input and of the output;
- BOS, the first symbol of the decoder's input, which fairseq writes as </s> too;
- padding, in a table that embeddings and output layer share (as in the models of 2024).

A recurrent language model reads neither BOS nor EOS, since its initial state gives the first distribution: it keeps
rows for the symbols and, in the output, for EOS. If it reads a stream in which </s> separates sentences, it also keeps
a row for EOS in the input.

The decoder still returns one logit for each entry of the dictionary: minus infinity where a symbol cannot occur.
"""

from __future__ import annotations

import hashlib
import re
from enum import Enum
from typing import Any

import torch
from fairseq.data import Dictionary
from torch import Tensor, nn

from fairseq_stack.errors import UserError
from fairseq_stack.networks.vocabulary import ABSENT

FINGERPRINT = "dictionary_version"  # fairseq takes no moving average of entries with "version" in their names


class End(Enum):
    """What </s> means in a sequence of tokens."""

    EOS = "end of a sequence"
    BOS = "beginning of a sequence"
    UNREAD = "nothing: the first token of a sequence is not read"


class CompactVocabulary:
    """The rows of compact tables for a dictionary.

    Rows 0..num_symbols-1 are the symbols, in the dictionary's order. In a shared table EOS, BOS and
    padding, unless it is left out, follow; in other tables only EOS or BOS.

    Args:
        dictionary: the fairseq dictionary.
        keep_unk: whether <unk> can occur.
        shared: whether input and output share one table.
        read_ends: whether </s> and padding have rows for the input.
        padding: whether padding, which is not read, has a row in a shared table.
    """

    def __init__(
        self, dictionary: Dictionary, keep_unk: bool, shared: bool, read_ends: bool = True, padding: bool = True
    ) -> None:
        special = {dictionary.bos(), dictionary.pad(), dictionary.eos()}
        if not keep_unk:
            special.add(dictionary.unk())
        self.size = len(dictionary)
        self.eos = dictionary.eos()
        self.pad = dictionary.pad()
        self.shared = shared
        self.read_ends = read_ends
        self.has_padding = shared and read_ends and padding
        self.symbols = [
            index for index in range(self.size) if index not in special and not _is_made_up(dictionary[index])
        ]

    def num_input_rows(self) -> int:
        if not self.read_ends:
            return self.num_output_rows() if self.shared else len(self.symbols)
        return len(self.symbols) + 1 + self.shared + self.has_padding

    def num_output_rows(self) -> int:
        return len(self.symbols) + 1

    def rows(self, end: End) -> Tensor:
        """The row of each entry of the dictionary, (size,), or ``ABSENT``, where </s> means ``end``."""
        rows = torch.full((self.size,), ABSENT)
        rows[self.symbols] = torch.arange(len(self.symbols))
        after_symbols = len(self.symbols)
        if end is not End.UNREAD:
            rows[self.eos] = after_symbols + 1 if self.shared and end is End.BOS else after_symbols
        if self.has_padding:
            rows[self.pad] = after_symbols + 2
        return rows


class CompactRows(nn.Module):
    """The rows of the symbols that can occur, looked up by their index in the dictionary.

    Args:
        vocabulary: which symbols can occur.
        end: what </s> means here.
    """

    rows: Tensor

    def __init__(self, vocabulary: CompactVocabulary, end: End) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.end = end
        self.padding_idx = vocabulary.pad
        self.register_buffer("rows", vocabulary.rows(end), persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """The rows of tokens (...), (...); ``ABSENT`` for padding and symbols that cannot occur."""
        return self.rows[tokens].masked_fill(tokens.eq(self.padding_idx), ABSENT)

    def check(self, tokens: Tensor, dictionary: Dictionary, first_is_read: bool = False) -> None:
        """Raise UserError if a token that is read, of tokens (B, n), is a symbol that cannot occur."""
        is_read = tokens.ne(self.padding_idx)
        if self.end is End.UNREAD and not first_is_read:
            is_read &= is_read.cumsum(1).gt(1)
        impossible = self.rows[tokens].eq(ABSENT) & is_read
        if impossible.any():
            symbol = dictionary[int(tokens[impossible][0])]
            advice = {
                dictionary.unk_word: "; train with --compact-vocab-unk",
                dictionary.eos_word: "; give --sample-break-mode eos, or leave --compact-vocab out",
            }
            raise UserError(
                f"the symbol {symbol!r} is in the data, but --compact-vocab treats it as a symbol that cannot occur"
                + advice.get(symbol, "")
            )


class CompactEmbedding(CompactRows):
    """Embeddings of the symbols that can occur, looked up by their index in the dictionary.

    Padding, and symbols that cannot occur, have the zero vector: a beam may hold dead hypotheses with such
    symbols. Whole models refuse them (:meth:`check`).

    Args:
        vocabulary: which symbols can occur.
        weight: the table, (num_input_rows, embedding_dim), possibly shared with others.
        end: what </s> means here.
    """

    def __init__(self, vocabulary: CompactVocabulary, weight: nn.Parameter, end: End) -> None:
        super().__init__(vocabulary, end)
        self.weight = weight
        self.embedding_dim = weight.size(1)

    def forward(self, tokens: Tensor) -> Tensor:
        """Embed tokens (...) as (..., embedding_dim)."""
        rows = super().forward(tokens)
        embedded = nn.functional.embedding(rows.clamp_min(0), self.weight)
        return embedded * rows.ne(ABSENT).unsqueeze(-1).to(self.weight.dtype)

    def at_beginning(self) -> CompactEmbedding:
        """The same table, for the decoder's input, where </s> is the beginning of a sequence."""
        return CompactEmbedding(self.vocabulary, self.weight, End.BOS)


class CompactOutput(nn.Module):
    """The output layer over EOS and the symbols that can occur; all others get the logit minus infinity.

    Args:
        vocabulary: which symbols can occur.
        weight: a table whose first ``num_output_rows`` rows are the output embeddings.
        bias: whether there is a bias.
    """

    rows: Tensor

    def __init__(self, vocabulary: CompactVocabulary, weight: nn.Parameter, bias: bool) -> None:
        super().__init__()
        self.weight = weight
        self.bias = nn.Parameter(torch.zeros(vocabulary.num_output_rows())) if bias else None
        rows = vocabulary.rows(End.EOS)
        rows[vocabulary.pad] = ABSENT
        self.register_buffer("rows", rows, persistent=False)

    def forward(self, features: Tensor) -> Tensor:
        """Map features (..., d) to logits over the whole dictionary, (..., size)."""
        weight = spread(self.weight, self.rows)
        bias = weight.new_zeros(len(weight)) if self.bias is None else self.bias[self.rows.clamp_min(0)]
        return nn.functional.linear(features, weight, bias.masked_fill(~self.can_occur(), -torch.inf))

    def can_occur(self) -> Tensor:
        """Which symbols can occur in the output, (size,)."""
        return self.rows.ne(ABSENT)


def spread(table: Tensor, rows: Tensor) -> Tensor:
    """The rows of a table (r, ...), at the places (size,) that name them, (size, ...); 0 where they are ``ABSENT``."""
    chosen = table.index_select(0, rows.clamp_min(0))
    return chosen * rows.ne(ABSENT).view(-1, *[1] * (table.dim() - 1)).to(table.dtype)


def check_symbols(part: Any, tokens: Tensor, first_is_read: bool = False) -> None:
    """Raise UserError if tokens (B, n) have symbols that the compact vocabulary of an encoder or decoder lacks.

    ``first_is_read``: whether a recurrent language model also reads the first tokens.
    """
    embed_tokens = getattr(part, "embed_tokens", None)
    if isinstance(embed_tokens, CompactRows):
        embed_tokens.check(tokens, part.dictionary, first_is_read)


def new_table(num_rows: int, embedding_dim: int, padding_row: int | None = None) -> nn.Parameter:
    """A table of embeddings, initialised as fairseq does: N(0, 1/d), padding 0."""
    weight = torch.empty(num_rows, embedding_dim).normal_(std=embedding_dim**-0.5)
    if padding_row is not None:
        weight[padding_row] = 0
    return nn.Parameter(weight)


def compact_embedding(vocabulary: CompactVocabulary, embed_dim: int) -> CompactEmbedding:
    """New embeddings for the input of an encoder; a decoder takes them ``at_beginning()``."""
    num_rows = vocabulary.num_input_rows()
    weight = new_table(num_rows, embed_dim, padding_row=num_rows - 1 if vocabulary.has_padding else None)
    return CompactEmbedding(vocabulary, weight, End.EOS)


def fingerprint(dictionary: Dictionary) -> int:
    """A 48-bit hash of the dictionary's symbols in their order, to tell vocabularies apart.

    A sum of thousands of them still fits into int64, as it must when checkpoints are averaged.
    """
    digest = hashlib.sha256("\n".join(dictionary.symbols).encode()).digest()
    return int.from_bytes(digest[:6], "big")


def register_fingerprint(side: nn.Module, dictionary: Dictionary) -> None:
    """Save the fingerprint of its dictionary with the parameters of an encoder or a decoder."""
    side.register_buffer(FINGERPRINT, torch.tensor(fingerprint(dictionary)))


def num_words(dictionary: Dictionary) -> int:
    """How many words a dictionary has, which its special symbols precede; made-up words, which follow, do not count."""
    return sum(not _is_made_up(symbol) for symbol in dictionary.symbols[dictionary.nspecial :])


def _is_made_up(symbol: str) -> bool:
    return re.fullmatch(r"madeupword\d{4}", symbol) is not None
