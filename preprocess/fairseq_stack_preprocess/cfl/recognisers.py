"""Recognisers of the twelve languages, which know nothing of grammars, and where only one next symbol is possible.

Position i of a string is after its first i symbols; the symbol there is the next one, and the end of the string counts
as a symbol. Only one symbol is *possible* at a position if all strings of the language, of whatever length, that begin
with these i symbols continue with the same symbol.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from .languages import MARK, Language, Parameters, Word, brackets, symbols


@dataclass(frozen=True)
class Recogniser:
    """What is known of a language, the empty string left out.

    Attributes:
        contains: whether a string is in the language.
        determined: of a string in the language, the positions (0 to its length) where only one symbol is possible.
    """

    contains: Callable[[Word], bool]
    determined: Callable[[Word], Sequence[int]]


def recogniser_of(language: Language, parameters: Parameters, *, unary_start: bool = False) -> Recogniser:
    """The recogniser of the strings that ``prepare cfl`` draws.

    Args:
        language: the language.
        parameters: all its parameters.
        unary_start: whether there are strings whose derivation begins with a unary rule (see
            :func:`.without_unary_start`): in Dyck a pair of brackets around everything, in padded reversal a single
            symbol.
    """
    return _MAKERS[language.name](parameters, unary_start)


Copies = Callable[[Word], Sequence[Word]]
"""The parts of a string that follow w, from w."""


def _marked(copies: Copies) -> Callable[[Parameters, bool], Recogniser]:
    """w and its copies with marks between them."""

    def make(parameters: Parameters, unary_start: bool) -> Recogniser:
        alphabet = symbols(parameters["symbol_types"])

        def contains(word: Word) -> bool:
            w, *rest = _split(word, MARK)
            return set(w) <= set(alphabet) and rest == list(copies(w))

        return Recogniser(contains, lambda word: _after_w(word, alphabet, may_end=lambda w: True))

    return make


def _in_a_row(alphabet: Sequence[str], copies: Copies) -> Recogniser:
    """w, which is not empty, and copies of the same length, of symbols that w does not have or of the same."""
    known = set(alphabet)
    number = 1 + len(copies(()))

    def contains(word: Word) -> bool:
        length, rest = divmod(len(word), number)
        w = word[:length]
        return rest == 0 < length and set(w) <= known and word == sum(copies(w), w)

    of_w_alone = set(copies((alphabet[0],))[0]) <= known

    def may_end(w: Word) -> bool:
        """Whether something else than a symbol of w can follow."""
        return contains(w) if of_w_alone else len(w) > 0

    return Recogniser(contains, lambda word: _after_w(word, alphabet, may_end))


def _after_w(word: Word, alphabet: Collection[str], may_end: Callable[[Word], bool]) -> list[int]:
    """The positions with one possible symbol, if w may be of any length, and what follows w follows from it.

    Within w all symbols of ``alphabet`` are possible, and others if w may end. If a symbol that w cannot have ends w,
    all later ones follow from w.
    """
    end = next((i for i, symbol in enumerate(word) if symbol not in alphabet), len(word))
    within = [i for i in range(end + 1) if not may_end(word[:i])] if len(alphabet) == 1 else []
    return [*within, *range(end + 1, len(word) + 1)]


def _unmarked(copies: Copies) -> Callable[[Parameters, bool], Recogniser]:
    return lambda parameters, unary_start: _in_a_row(symbols(parameters["symbol_types"]), copies)


def _two_alphabets(parameters: Parameters, unary_start: bool) -> Recogniser:
    number = int(parameters["symbol_types"])
    alphabet = symbols(2 * number)
    other = dict(zip(alphabet[:number], alphabet[number:], strict=True))
    return _in_a_row(alphabet[:number], lambda w: [tuple(other.get(symbol, symbol) for symbol in w)])


def _count(parameters: Parameters, unary_start: bool) -> Recogniser:
    return _in_a_row(["a"], lambda w: [("b",) * len(w), ("c",) * len(w)])


def _padded_reversal(parameters: Parameters, unary_start: bool) -> Recogniser:
    """All palindromes: w may be the whole first half."""
    alphabet = symbols(parameters["symbol_types"])
    least = 1 if unary_start else 2

    def contains(word: Word) -> bool:
        return set(word) <= set(alphabet) and len(word) >= least and word == word[::-1]

    return Recogniser(contains, lambda word: _after_w(word, alphabet, may_end=contains))


def _dyck(parameters: Parameters, unary_start: bool) -> Recogniser:
    closing = {right: left for left, right in brackets(parameters["bracket_types"])}
    least = 1 if unary_start else 2

    def contains(word: Word) -> bool:
        open_brackets = list(_open_brackets(word, closing))
        return len(open_brackets) == len(word) and open_brackets[-1:] == [0] and open_brackets.count(0) >= least

    def determined(word: Word) -> list[int]:
        if len(closing) > 1:  # all opening brackets are always possible
            return []
        levels = [0, *_open_brackets(word, closing)]
        return [i for i, level in enumerate(levels) if level == 0 and not contains(word[:i])]

    return Recogniser(contains, determined)


def _open_brackets(word: Word, closing: Mapping[str, str]) -> Iterator[int]:
    """The number of open brackets after each symbol, up to the first symbol that cannot be there."""
    stack: list[str] = []
    for symbol in word:
        if symbol in closing.values():
            stack.append(symbol)
        elif not stack or stack.pop() != closing.get(symbol):
            return
        yield len(stack)


def _hardest(parameters: Parameters, unary_start: bool) -> Recogniser:
    """Within a block all symbols except the comma are always possible: of the part that is being read, nobody knows
    that it is the one to be taken. After a block another may follow."""
    return Recogniser(_is_hardest, lambda word: [])


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


_MAKERS: Mapping[str, Callable[[Parameters, bool], Recogniser]] = {
    "marked-reversal": _marked(lambda w: [w[::-1]]),
    "unmarked-reversal": _unmarked(lambda w: [w[::-1]]),
    "padded-reversal": _padded_reversal,
    "dyck": _dyck,
    "hardest-cfl": _hardest,
    "count-3": _count,
    "marked-copy": _marked(lambda w: [w]),
    "unmarked-copy": _unmarked(lambda w: [w]),
    "marked-reverse-and-copy": _marked(lambda w: [w[::-1], w]),
    "unmarked-reverse-and-copy": _unmarked(lambda w: [w[::-1], w]),
    "count-and-copy": _unmarked(lambda w: [(MARK,) * len(w), w]),
    "unmarked-copy-different-alphabets": _two_alphabets,
}
