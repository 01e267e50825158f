"""Plain text split into words as in the Penn Treebank."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import partial


@functools.cache
def penn_splitter() -> Callable[[str], list[str]]:
    """The function that splits a sentence: *can't* is *ca* and *n't*, punctuation stands alone, and ( is ``-LRB-``.

    A full stop at the end of the text is a word; others may be parts of abbreviations, and stay where they are.

    Raises:
        ModuleNotFoundError: nltk is not installed.
    """
    from nltk.tokenize import TreebankWordTokenizer

    return partial(TreebankWordTokenizer().tokenize, convert_parentheses=True)
