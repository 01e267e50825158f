"""Unlabelled binary trees as spans and as attachments, and the two lines of text that stand for them.

A tree over the tokens 1..n (0 is what precedes the sentence, ROOT in Pushdown Layers) is made binary and
unary-free: a node with one child is that child, and a node with the children A B C D becomes
(A (B (C D))), which is Chomsky normal form factored to the right, as in ``nltk``. A tree over n tokens has
n - 1 nodes.

**Spans**, files ``.spans``: one line per sentence, the nodes as ``first-last``, both included, in the order in
which the nodes are complete when read from left to right: by their last token, and among those with the
same one the innermost first. ``((The dog) (is happy))`` is ``1-2 3-4 1-4``. The line of a sentence of one
token is empty.

**Attachments**, files ``.attach``: one line per sentence, the n numbers r_1..r_n of Murty et al. (2023), the
targets of their attachment head and the whole content of the stack tape: r_k = k if token k is shifted only,
else r_k is the last token of the constituent that k is combined with last. The same tree is ``1 1 3 2``.
The end of the sentence, which attaches to 0, is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .brackets import Tree, fold

Span = tuple[int, int]
"""First and last token of a node, both included; tokens count from 1."""


def binary_spans(tree: Tree) -> list[Span]:
    """The nodes of the tree, binary and without unary nodes, in the order of this module's description."""
    spans: list[Span] = []
    tokens = 0

    def word(tag: str, text: str) -> Span:
        nonlocal tokens
        tokens += 1
        return tokens, tokens

    def phrase(label: str, children: list[Span]) -> Span:
        spans.extend(_flat_node(children))
        return children[0][0], children[-1][1]

    fold(tree, word, phrase)
    return spans


def _flat_node(children: Sequence[Span]) -> list[Span]:
    """The nodes that a node with these children becomes, innermost first."""
    last = children[-1][1]
    return [(first, last) for first, _ in reversed(children[:-1])]


def piece_spans(spans: Sequence[Span], pieces: Sequence[int]) -> list[Span]:
    """The spans over the pieces of words: each word of several pieces is a node with these as its children.

    Args:
        spans: over words.
        pieces: the number of pieces of each word, at least 1.
    """
    first, last = [0], [0]
    nodes: list[Span] = []
    for count in pieces:
        first.append(last[-1] + 1)
        last.append(last[-1] + count)
        nodes += _flat_node([(piece, piece) for piece in range(first[-1], last[-1] + 1)])
    nodes += [(first[start], last[end]) for start, end in spans]
    return sorted(nodes, key=lambda span: (span[1], -span[0]))


def attachments(spans: Sequence[Span], tokens: int) -> list[int]:
    """r_1..r_n of the tree with these spans over n = ``tokens`` tokens.

    The largest node that ends at k has two children, of which the right one is the second largest node that
    ends at k, or k itself; r_k is the token before it.
    """
    begins: dict[int, list[int]] = {}
    for first, last in spans:
        begins.setdefault(last, [last]).append(first)
    return [begins[k][-2] - 1 if k in begins else k for k in range(1, tokens + 1)]


def spans_of_attachments(attached: Sequence[int]) -> list[Span]:
    """The spans of the nodes that are made when each token k attaches to r_k; the inverse of :func:`attachments`.

    Raises:
        ValueError: an r_k is neither k nor the last token of a constituent that is on the stack.
    """
    spans: list[Span] = []
    stack: list[Span] = []
    for k, r in enumerate(attached, start=1):
        first = last = k
        while last != r and stack and stack[-1][1] >= r:
            first, last = stack.pop()
            spans.append((first, k))
        if last != r:
            raise ValueError(f"token {k} attaches to {r}, where no constituent on the stack ends")
        stack.append((first, k))
    return spans


def depths(spans: Iterable[Span], tokens: int) -> list[int]:
    """The number of nodes above each token: the last row of the stack tape before the sentence ends."""
    changes = [0] * (tokens + 2)
    for first, last in spans:
        changes[first] += 1
        changes[last + 1] -= 1
    depth = 0
    return [depth := depth + change for change in changes[1 : tokens + 1]]


def format_spans(spans: Iterable[Span]) -> str:
    """The line of a file ``.spans``."""
    return " ".join(f"{first}-{last}" for first, last in spans)


def parse_spans(line: str) -> list[Span]:
    """The inverse of :func:`format_spans`."""
    pairs = (part.split("-") for part in line.split())
    return [(int(first), int(last)) for first, last in pairs]
