"""Random parses and golden ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st


def random_parse(draw: st.DrawFn, words: int, *, ends: bool) -> list[int]:
    """r_0, ..., r_n for this many words, and of the end of the sentence."""
    attachments, stack = [0], [0]
    for k in range(1, words + 1):
        r = draw(st.sampled_from([*stack[1:], k]))
        stack = [last for last in stack if last < r] + [k]
        attachments.append(r)
    return [*attachments, 0] if ends else attachments


def joined(sentences: Sequence[Sequence[int]]) -> list[int]:
    """The parse of sentences one after the other: the end of each, which the last need not have, is the next ROOT."""
    attachments = [0]
    for sentence in sentences:
        root = len(attachments) - 1
        attachments += [root + r for r in sentence[1:]]
    return attachments


@st.composite
def windows(draw: st.DrawFn) -> list[list[int]]:
    """The parses of one to four sentences, with their ends."""
    return [random_parse(draw, words, ends=True) for words in draw(st.lists(st.integers(0, 8), min_size=1, max_size=4))]


@st.composite
def batches(draw: st.DrawFn, most_words: int = 12) -> list[list[int]]:
    """Parses of one to three sentences of several lengths, padded with tokens that attach to themselves."""
    rows = []
    for lengths in draw(st.lists(st.lists(st.integers(0, most_words), min_size=1, max_size=3), min_size=1, max_size=4)):
        *before, last = lengths
        sentences = [random_parse(draw, length, ends=True) for length in before]
        rows.append(joined([*sentences, random_parse(draw, last, ends=draw(st.booleans()))]))
    size = max(map(len, rows))
    return [row + list(range(len(row), size)) for row in rows]


def golden_parses(reference_data: Path, name: str) -> list[dict[str, Any]]:
    """The lines of a golden file of trees or of Dyck strings."""
    path = reference_data / "golden" / "pushdown" / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
