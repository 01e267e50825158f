"""Binary trees as operations of a stack, one per token: the decisions of a left-corner parser.

The stack holds incomplete constituents A/B: A is complete as soon as a B follows. When a token comes, B is awaited on
top of the stack, and two questions are asked. Is the token a left child? Then it is complete by itself; otherwise it is
the B that was awaited, and A is complete. Is the parent of what is complete now the awaited constituent of the top (or
one that begins there)?

    the token is a left child | its parent is awaited | operation
    yes                       | no                    | PUSH a new A/B
    no                        | yes                   | POP A/B, and go on in the constituent below
    yes                       | yes                   | DESCEND: A/B becomes A/B', the rest of B after the token
    no                        | no                    | CLIMB: A/B becomes P/B', where A is the left child of P

The first token begins the only constituent of the stack, and the last one completes it; both have the operation BEGIN.
Heights are thus a Motzkin path with level steps of two colours, from the second token to the last but one, and each
such path is one tree: there are as many trees of n tokens as paths of n - 2 steps. The heights are the depth of centre
embedding. Left-corner parsers with these two questions: van Schijndel, Exley and Schuler (2013).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from .spans import Span


class TreeOperation(IntEnum):
    """What a token does to a stack of incomplete constituents."""

    BEGIN = 0
    PUSH = 1
    POP = 2
    DESCEND = 3
    CLIMB = 4


def operations(spans: Sequence[Span], tokens: int) -> list[TreeOperation]:
    """The operation of each token of a tree; several trees in a row become one that branches to the right.

    Args:
        spans: the nodes, as :func:`.spans.binary_spans` returns them.
        tokens: how many tokens they are over.
    """
    ends: list[list[int]] = [[] for _ in range(tokens + 1)]  # by the first token
    begins = list(range(tokens + 1))  # of the largest node, by the last token
    for first, last in [*spans, *_above(spans, tokens)]:
        ends[first].append(last)
        begins[last] = min(begins[last], first)
    found = [TreeOperation.BEGIN] * tokens
    for token in range(2, tokens):
        is_left = bool(ends[token])
        first = token if is_left else begins[token]
        parent = min(last for last in ends[first] if last > token)
        found[token - 1] = _OPERATIONS[is_left, begins[parent] < first]
    return found


_OPERATIONS = {
    (True, False): TreeOperation.PUSH,
    (False, True): TreeOperation.POP,
    (True, True): TreeOperation.DESCEND,
    (False, False): TreeOperation.CLIMB,
}


def _above(spans: Sequence[Span], tokens: int) -> list[Span]:
    """The nodes that join trees in a row, innermost first."""
    begins = {last: first for first, last in sorted(spans, reverse=True)}
    roots, last = [], tokens
    while last > 0:
        roots.append(begins.get(last, last))
        last = roots[-1] - 1
    return [(first, tokens) for first in roots[1:]]


def spans_of_operations(found: Sequence[TreeOperation]) -> list[Span]:
    """The nodes of the tree with these operations; the inverse of :func:`operations` of one tree.

    Any operations give a tree. A pop where one constituent is on the stack climbs; what is not complete at the last
    token ends there; and what the first and the last token do does not matter.
    """
    tokens = len(found)
    spans: list[Span] = []
    stack: list[list[int]] = [[1]]  # of each constituent the first tokens of its nodes that end together
    for token in range(2, tokens):
        operation = found[token - 1]
        if operation == TreeOperation.PUSH:
            stack.append([token])
        elif operation in (TreeOperation.DESCEND, TreeOperation.BEGIN):
            stack[-1].append(token)
        else:
            spans += [(first, token) for first in reversed(stack[-1])]
            first = stack.pop()[0]
            if operation == TreeOperation.POP and stack:
                stack[-1].append(first)
            else:
                stack.append([first])
    if tokens > 1:
        spans += [(first, tokens) for constituent in reversed(stack) for first in reversed(constituent)]
    return spans


def is_tree(found: Sequence[TreeOperation]) -> bool:
    """Whether the operations between the first and the last token end at the height that they begin at, and never
    below it.
    """
    height = 0
    for operation in found[1:-1]:
        height += (operation == TreeOperation.PUSH) - (operation == TreeOperation.POP)
        if height < 0:
            return False
    return height == 0
