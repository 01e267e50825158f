"""Recognisers of the twelve languages, which know nothing of grammars."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from fairseq_stack_preprocess.cfl.languages import Word


def halves(word: Word) -> tuple[Word, Word]:
    return word[: len(word) // 2], word[len(word) // 2 :]


def thirds(word: Word) -> tuple[Word, Word, Word]:
    n = len(word) // 3
    return word[:n], word[n : 2 * n], word[2 * n :]


def is_dyck(word: Word) -> bool:
    """Balanced, with at least one bracket."""
    closing = {")": "(", "]": "["}
    stack: list[str] = []
    for symbol in word:
        if symbol not in closing:
            stack.append(symbol)
        elif not stack or stack.pop() != closing[symbol]:
            return False
    return not stack and len(word) > 0


def is_hardest(word: Word) -> bool:
    """Blocks that end with a semicolon, of each of which one part between two commas can be taken such that the parts
    in a row are $ and balanced brackets; all runs of choices are followed at once."""
    if word[-1:] != (";",):
        return False
    stacks: set[str] = {"start"}
    for block in "".join(word[:-1]).split(";"):
        parts = block.split(",")[1:-1]
        stacks = {after for part in parts for before in stacks for after in run(before, part)}
    return "" in stacks


def run(stack: str, part: str) -> Iterator[str]:
    for symbol in part:
        if stack == "start":
            if symbol != "$":
                return
            stack = ""
        elif symbol in "([":
            stack += symbol
        elif symbol == "$" or stack[-1:] + symbol not in ("()", "[]"):
            return
        else:
            stack = stack[:-1]
    yield stack


RECOGNISERS: dict[str, Callable[[Word], bool]] = {
    "marked-reversal": lambda w: w == w[::-1] and w.count("#") == 1 and w[len(w) // 2] == "#",
    "unmarked-reversal": lambda w: w == w[::-1] and len(w) % 2 == 0,
    "padded-reversal": lambda w: w == w[::-1],
    "dyck": is_dyck,
    "hardest-cfl": is_hardest,
    "count-3": lambda w: (
        [(a, len(list(group))) for a, group in itertools.groupby(w)] == [(a, len(w) // 3) for a in "abc"]
    ),
    "marked-copy": lambda w: w.count("#") == 1 and w[: w.index("#")] == w[w.index("#") + 1 :],
    "unmarked-copy": lambda w: halves(w)[0] == halves(w)[1],
    "marked-reverse-and-copy": lambda w: (parts := "".join(w).split("#")) == [parts[0], parts[0][::-1], parts[0]],
    "unmarked-reverse-and-copy": lambda w: thirds(w) == (thirds(w)[0], thirds(w)[0][::-1], thirds(w)[0]),
    "count-and-copy": lambda w: (
        thirds(w) == (thirds(w)[2], ("#",) * (len(w) // 3), thirds(w)[0]) and "#" not in thirds(w)[0]
    ),
    "unmarked-copy-different-alphabets": lambda w: (
        set(halves(w)[0]) <= {"0", "1"} and halves(w)[1] == tuple({"0": "2", "1": "3"}[a] for a in halves(w)[0])
    ),
}
