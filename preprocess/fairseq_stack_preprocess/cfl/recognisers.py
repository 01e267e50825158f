"""Recognisers of the twelve languages, which know nothing of grammars."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from .languages import MARK, Language, Parameters, Word, brackets, symbols

Recogniser: TypeAlias = Callable[[Word], bool]
"""Whether a string is in a language; the empty string is in none."""


def recogniser_of(language: Language, parameters: Parameters) -> Recogniser:
    """The recogniser of the strings that ``prepare cfl`` draws from a language with all its parameters.

    No derivation begins with a unary rule (see :func:`.without_unary_start`): no Dyck string is a pair of brackets
    around everything, and no padded reversal a single symbol.
    """
    if language.transform is not None:
        return language.transform(parameters).contains
    return _MAKERS[language.name](parameters)


def _reversal(middle: Word) -> Callable[[Parameters], Recogniser]:
    def make(parameters: Parameters) -> Recogniser:
        alphabet = set(symbols(parameters["symbol_types"]))

        def contains(word: Word) -> bool:
            w = word[: (len(word) - len(middle)) // 2]
            return len(word) > 0 and set(w) <= alphabet and word == (*w, *middle, *w[::-1])

        return contains

    return make


def _padded_reversal(parameters: Parameters) -> Recogniser:
    """All palindromes of two symbols or more: w may be the whole first half."""
    alphabet = symbols(parameters["symbol_types"])

    def contains(word: Word) -> bool:
        return set(word) <= set(alphabet) and len(word) >= 2 and word == word[::-1]

    return contains


def _dyck(parameters: Parameters) -> Recogniser:
    closing = {right: left for left, right in brackets(parameters["bracket_types"])}

    def contains(word: Word) -> bool:
        open_brackets = list(_open_brackets(word, closing))
        return len(open_brackets) == len(word) and open_brackets[-1:] == [0] and open_brackets.count(0) >= 2

    return contains


def _open_brackets(word: Word, closing: Mapping[str, str]) -> Iterator[int]:
    """The number of open brackets after each symbol, up to the first symbol that cannot be there."""
    stack: list[str] = []
    for symbol in word:
        if symbol in closing.values():
            stack.append(symbol)
        elif not stack or stack.pop() != closing.get(symbol):
            return
        yield len(stack)


def _is_hardest(word: Word) -> bool:
    """Whether a string is blocks that end with a semicolon, of each of which one part between two commas can be taken
    such that the parts in a row are $ and balanced brackets, at least one; all runs of choices are followed at once.

    Parts between two commas are not empty; what is before the first comma and after the last may be.
    """
    *blocks, rest = _split(word, ";")
    if rest or not set(word) <= set("()[],;$"):
        return False
    stacks = {_START}
    for block in blocks:
        parts = _split(block, ",")[1:-1]
        if not all(parts):
            return False
        stacks = {after for part in parts for before in stacks for after in _run(before, part)}
    return "" in stacks


_START, _NO_BRACKET = "start", "none"
"""The stacks before the $ and after it; after the first bracket the stack is the open brackets."""


def _run(stack: str, part: Word) -> Iterator[str]:
    """The stack after a part is read with the stack ``stack``; nothing if the part cannot be read."""
    for symbol in part:
        if stack == _START:
            if symbol != "$":
                return
            stack = _NO_BRACKET
        elif symbol in "([":
            stack = stack.removeprefix(_NO_BRACKET) + symbol
        elif symbol == "$" or stack[-1:] + symbol not in ("()", "[]"):
            return
        else:
            stack = stack[:-1]
    yield stack


def _split(word: Word, separator: str) -> list[Word]:
    """The parts of a string between separators."""
    ends = [i for i, symbol in enumerate(word) if symbol == separator]
    return [word[start:end] for start, end in zip([0, *(i + 1 for i in ends)], [*ends, len(word)], strict=True)]


_MAKERS: Mapping[str, Callable[[Parameters], Recogniser]] = {
    "marked-reversal": _reversal((MARK,)),
    "unmarked-reversal": _reversal(()),
    "padded-reversal": _padded_reversal,
    "dyck": _dyck,
    "hardest-cfl": lambda parameters: _is_hardest,
}
