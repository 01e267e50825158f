"""The stack tape by Algorithm 1 of Murty et al. (2023): slow, and easy to check against the paper."""

from __future__ import annotations

from collections.abc import Sequence


def stack_tape_reference(attachments: Sequence[int]) -> list[list[int]]:
    """The rows W_0, ..., W_n of one sequence; W_t has the entries of the tokens 0, ..., t.

    Args:
        attachments: r_0, ..., r_n. Token 0 is ROOT, r_0 = 0.

    Raises:
        ValueError: no constituent on the stack has r_k as its last token.
    """
    depths: list[int] = []
    stack: list[list[int]] = []
    rows = []
    for k, r in enumerate(attachments):
        depths.append(0)
        _update(depths, k, r, stack)
        rows.append(list(depths))
    return rows


def _update(depths: list[int], k: int, r: int, stack: list[list[int]]) -> None:
    """Algorithm 1. It compares r_k with the constituent ``top``; what is meant is the last token of ``top``."""
    constituent = [k]
    while r != k:
        if not stack:
            raise ValueError(f"token {k} attaches to {r}, where no constituent on the stack ends")
        top = stack.pop()
        constituent = top + constituent
        for token in constituent:
            depths[token] += 1
        if top[-1] == r:
            break
    stack.append(constituent)
