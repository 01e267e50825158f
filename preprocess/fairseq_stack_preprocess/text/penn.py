"""Plain text split into words as in the Penn Treebank."""

from __future__ import annotations

import functools
from collections.abc import Callable


@functools.cache
def penn_splitter() -> Callable[[str], list[str]]:
    """The function that splits text into words: *can't* is *ca* and *n't*, and punctuation stands alone.

    Raises:
        ModuleNotFoundError: nltk is not installed.
    """
    from nltk.tokenize import TreebankWordTokenizer

    split: Callable[[str], list[str]] = TreebankWordTokenizer().tokenize
    return split
