"""GPT-2's subwords: pieces of bytes, as a folder of Hugging Face transformers defines them.

Each byte is written as a visible character, so a piece holds no white space, and ``Ġ`` is a space. No text is unknown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..errors import PrepareError
from ..layout import TOKENIZER_NAME

TOKENIZER_FILES = (TOKENIZER_NAME, "vocab.json", "merges.txt")
END = "<|endoftext|>"
"""What separates texts; fairseq has ``</s>`` for it."""


def read_tokenizer(folder: Path, flag: str) -> str:
    """The tokenizer in ``tokenizer.json``, or in ``vocab.json`` and ``merges.txt``, as ``tokenizers`` writes it.

    Args:
        folder: the folder.
        flag: the option that names it, for errors.

    Raises:
        PrepareError: the folder has no tokenizer of bytes that can be read.
    """
    from tokenizers import ByteLevelBPETokenizer, Tokenizer

    whole, *parts = (folder / name for name in TOKENIZER_FILES)
    if not whole.is_file() and not all(part.is_file() for part in parts):
        raise PrepareError(
            f"{flag} {folder}: expected a folder with {TOKENIZER_NAME}, or with vocab.json and merges.txt"
        )
    try:
        if whole.is_file():
            tokenizer = Tokenizer.from_file(str(whole))
        else:
            tokenizer = ByteLevelBPETokenizer.from_file(*map(str, parts))
            tokenizer.add_special_tokens([END])
    except Exception as error:  # tokenizers has no exception of its own
        raise PrepareError(f"{flag} {folder}: the tokenizer cannot be read: {error}") from error
    text: str = tokenizer.to_str()
    cut_first = json.loads(text).get("pre_tokenizer") or {}
    if cut_first.get("type") != "ByteLevel" or cut_first["add_prefix_space"]:
        raise PrepareError(f"{flag} {folder}: expected GPT-2's tokenizer of bytes (ByteLevel without add_prefix_space)")
    return text


class ByteEncoder:
    """Cuts text into the pieces of a tokenizer, and joins them again.

    Args:
        tokenizer: as :func:`read_tokenizer` returns it.

    Raises:
        ValueError: it is not such a tokenizer.
    """

    def __init__(self, tokenizer: str) -> None:
        from tokenizers import Tokenizer, decoders

        try:
            self._tokenizer: Any = Tokenizer.from_str(tokenizer)
        except Exception as error:  # tokenizers has no exception of its own
            raise ValueError(str(error)) from error
        self._decoder = decoders.ByteLevel()

    def encode(self, lines: Iterable[str]) -> Iterator[list[str]]:
        """Yield the pieces of each line."""
        for encoding in self._tokenizer.encode_batch(list(lines), add_special_tokens=False):
            yield encoding.tokens

    def decode(self, pieces: Iterable[str]) -> str:
        """The text that pieces stand for."""
        text: str = self._decoder.decode(list(pieces))
        return text

    def pieces(self) -> frozenset[str]:
        """All pieces that text can be cut into."""
        return frozenset(self._tokenizer.get_vocab(with_added_tokens=True)) - {END}
