"""Parses in brackets, as a user writes and reads them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fairseq_stack.errors import UserError
from fairseq_stack_preprocess.errors import PrepareError
from fairseq_stack_preprocess.trees.brackets import TOKEN, clean, parse_trees, tagged_words
from fairseq_stack_preprocess.trees.spans import Span, attachments, binary_spans, piece_spans

_LABEL = "X"
_BRACKETS = {"(": "-LRB-", ")": "-RRB-"}


def bracketed(attached: Sequence[int], words: Sequence[str]) -> str:
    """The trees that are built when word k attaches to r_k, such as ``((The dog) barks)``, separated by spaces.

    Brackets in words become -LRB- and -RRB-.

    Args:
        attached: r_1, ..., r_n.
        words: the words 1, ..., n.
    """
    stack: list[tuple[int, str]] = []
    for k, (r, word) in enumerate(zip(attached, words, strict=True), start=1):
        tree = _escaped(word)
        while r < k and stack and stack[-1][0] >= r:
            tree = f"({stack.pop()[1]} {tree})"
        stack.append((k, tree))
    return " ".join(tree for _, tree in stack)


def read_attachments(text: str, words: Sequence[str], pieces: Sequence[int], name: str) -> list[int]:
    """The attachments r_1, ..., r_n of a tree in brackets: with labels and a tag for each word, or with neither.

    Nodes with more than two children become binary as in ``fairseq-stack prepare treebank``, and traces are left out.
    Several trees may stand side by side.

    Args:
        text: the tree, such as ``(S (NP (DT The) (NN dog)) (VP (VBZ barks)))`` or ``((The dog) barks)``.
        words: the words of the sentence.
        pieces: the number of tokens of each word; they are a node.
        name: of the text, for errors.

    Raises:
        UserError: the text is not a tree, or has other words.
    """
    if re.search(r"\(\s*\)", text) or not text.strip():
        raise UserError(f"{name}: expected a tree in brackets, got {text!r}, in which something is empty")
    readings = [_leaves_and_spans(form, name) for form in (text, _labelled(text))]
    expected = [_escaped(word) for word in words]
    trees = [reading for reading in readings if isinstance(reading, tuple)]
    for leaves, spans in trees:
        if [_escaped(leaf) for leaf in leaves] == expected:
            return attachments(piece_spans(spans, pieces), sum(pieces))
    if not trees:
        raise UserError(str(readings[1]))
    leaves, _ = min(trees, key=lambda reading: abs(len(reading[0]) - len(words)))
    raise UserError(f"{name}: its words are {' '.join(leaves)!r}; expected those of the sentence, {' '.join(words)!r}")


def _leaves_and_spans(text: str, name: str) -> tuple[list[str], list[Span]] | PrepareError:
    """The words of labelled trees, and their nodes; or what is wrong with them."""
    try:
        trees = parse_trees(text, name)
    except PrepareError as error:
        return error
    leaves: list[str] = []
    spans: list[Span] = []
    for tree in filter(None, map(clean, trees)):
        before = len(leaves)
        spans += [(first + before, last + before) for first, last in binary_spans(tree)]
        leaves += [word for _, word in tagged_words(tree)]
    return leaves, spans


def _labelled(text: str) -> str:
    """Trees without labels and tags, with some."""
    return re.sub(TOKEN, lambda token: {"(": f"({_LABEL} ", ")": ")"}.get(token[0], f"({_LABEL} {token[0]})"), text)


def _escaped(word: str) -> str:
    return re.sub(r"[()]", lambda bracket: _BRACKETS[bracket[0]], word)
