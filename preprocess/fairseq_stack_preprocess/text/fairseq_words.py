"""Words that fairseq would misread."""

from __future__ import annotations

import re

from ..errors import PrepareError

MISLEADING = re.compile(r"[^\S \t]")
"""White space at which only fairseq splits words, and no text format of this package, such as a no-break space."""

SPECIAL_WORDS = frozenset({"<s>", "<pad>", "</s>"})
"""Symbols that fairseq's dictionary reserves, except ``<unk>``, which may occur in text with its own meaning."""


def check_white_space(line: str, place: str) -> None:
    """Raise PrepareError if the line holds white space other than spaces and tabs; ``place`` is its file and number."""
    misleading = MISLEADING.search(line)
    if misleading is not None:
        code, position = ord(misleading.group()), misleading.start() + 1
        raise PrepareError(
            f"{place}: U+{code:04X} at position {position}: fairseq would split the word there; "
            "only spaces and tabs may separate words"
        )


def check_word(word: str, place: str) -> None:
    """Raise PrepareError if the word is one of :data:`SPECIAL_WORDS`; ``place`` is its file and line."""
    if word in SPECIAL_WORDS:
        raise PrepareError(f"{place}: fairseq reserves the symbol {word}; it cannot be a word of the text")
