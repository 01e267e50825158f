"""The languages of DuSell and Chiang (2020, 2022), with their parameters.

``f(mean) = 1 - 1 / (mean + 1)`` is the probability of going on such that things are repeated ``mean`` times on average.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..errors import PrepareError, flag_of

Parameters = Mapping[str, float]
"""Values of parameters by name, e.g. ``symbol_types``."""

Word = tuple[str, ...]

MARK = "#"

BRACKETS = ("()", "[]", "{}", "<>")


@dataclass(frozen=True)
class Parameter:
    """A number that a language depends on.

    Attributes:
        meaning: for the help.
        whole: whether it is an integer.
        above: it must be greater than this.
        below: it must be less than this.
    """

    meaning: str
    whole: bool = False
    above: float = 0
    below: float = 1e6

    def check(self, name: str, value: float) -> None:
        """Raise PrepareError if ``value`` is out of range; ``name`` is the parameter's."""
        if not self.above < value < self.below:
            limits = f"greater than {self.above:g} and less than {self.below:g}"
            raise PrepareError(f"{flag_of(name)} must be {limits}, got {value:g}")
        if self.whole and value != int(value):
            raise PrepareError(f"{flag_of(name)} must be an integer, got {value:g}")


PARAMETERS = {
    "symbol_types": Parameter("number of different symbols in w", whole=True, below=10_000),
    "bracket_types": Parameter("number of kinds of brackets", whole=True, below=10_000),
    "mean_content_length": Parameter("mean length of w, before lengths are given"),
    "mean_padding_length": Parameter("mean length of the padding, before lengths are given"),
    "mean_bracket_splits": Parameter("mean number of brackets that follow another"),
    "mean_nesting_depth": Parameter("mean nesting depth of brackets", above=1),
    "mean_commas": Parameter("mean number of commas above the minimum"),
    "mean_short_filler_length": Parameter("mean length of the parts next to the middle part"),
    "mean_long_filler_length": Parameter("mean length of the parts between other commas", above=1),
    "semicolon_probability": Parameter("probability of a semicolon inside the brackets", below=1),
}
"""All parameters of all languages."""


@dataclass(frozen=True)
class Language:
    """A language.

    Attributes:
        name: its name on the command line.
        form: what its strings look like.
        defaults: its parameters with the papers' values.
        grammar: a text of a grammar (see :mod:`.notation`), from parameters; None if it is not context-free.
        transform: for languages that are not context-free: the terminals of which w is made, and what string w
            becomes; all strings of a length are equally likely.
        attachments: the parse of a string, as in :mod:`..trees.spans`: each symbol attaches to itself, or to its
            counterpart before it; None if a string has several parses, or none.
    """

    name: str
    form: str
    defaults: Parameters
    grammar: Callable[[Parameters], str] | None = None
    transform: Callable[[Parameters], Transform] | None = None
    attachments: Callable[[Word], list[int]] | None = None

    def parameters(self, chosen: Parameters) -> Parameters:
        """All parameters: the ``chosen`` ones, and defaults for the others.

        Raises:
            PrepareError: the language has no parameter of a name, or a value is out of range.
        """
        for name, value in chosen.items():
            if name not in self.defaults:
                flags = ", ".join(map(flag_of, self.defaults)) or "no parameters"
                raise PrepareError(f"{flag_of(name)} is not a parameter of {self.name}, which has {flags}")
            PARAMETERS[name].check(name, value)
        return {**self.defaults, **chosen}


@dataclass(frozen=True)
class Transform:
    """A language whose strings are made from any w.

    Attributes:
        symbols: the terminals of which w is made.
        vocabulary: the terminals of the strings.
        string: the string of w.
    """

    symbols: Sequence[str]
    vocabulary: Sequence[str]
    string: Callable[[Word], Word]

    def content_length(self, length: int) -> int | None:
        """The length of w in strings of ``length``; None if there are none."""
        empty, one = (len(self.string((self.symbols[0],) * n)) for n in (0, 1))
        content, rest = divmod(length - empty, one - empty)
        return content if content >= 0 and rest == 0 else None

    def contains(self, string: Word) -> bool:
        """Whether some w becomes ``string``; the empty string is in no language."""
        w = string[: self.content_length(len(string))]
        return len(string) > 0 and set(w) <= set(self.symbols) and self.string(w) == string


def f(mean: float) -> float:
    """The probability of going on, for a mean number of repetitions (2020 paper, Appendix B)."""
    return 1 - 1 / (mean + 1)


def symbols(number: float) -> list[str]:
    """The terminals 0, 1, ..."""
    return [str(i) for i in range(int(number))]


def brackets(number: float) -> list[tuple[str, str]]:
    """Opening and closing brackets of each kind; from the fifth kind on they are numbered."""
    kinds = [BRACKETS[i] if i < len(BRACKETS) else "()" for i in range(int(number))]
    suffixes = ["" if i < len(BRACKETS) else str(i) for i in range(int(number))]
    return [(kind[0] + suffix, kind[1] + suffix) for kind, suffix in zip(kinds, suffixes, strict=True)]


def _reversal(parameters: Parameters, middle: str) -> str:
    go_on = f(parameters["mean_content_length"])
    alphabet = symbols(parameters["symbol_types"])
    lines = [f"S -> '{a}' S '{a}' [{go_on / len(alphabet)!r}]" for a in alphabet]
    return "\n".join([*lines, f"S -> {middle} [{1 - go_on!r}]"])


def _padded_reversal(parameters: Parameters) -> str:
    content, padding = f(parameters["mean_content_length"]), f(parameters["mean_padding_length"])
    alphabet = symbols(parameters["symbol_types"])
    lines = [f"S -> '{a}' S '{a}' [{content / len(alphabet)!r}]" for a in alphabet]
    lines += [f"S -> T{a} [{(1 - content) / len(alphabet)!r}]" for a in alphabet]
    lines += [f"T{a} -> '{a}' T{a} [{padding!r}] | '' [{1 - padding!r}]" for a in alphabet]
    return "\n".join(lines)


def _dyck(parameters: Parameters) -> str:
    # The paper prints f(mean nesting depth); its data are drawn with one less, and so are these.
    split, nest = f(parameters["mean_bracket_splits"]), f(parameters["mean_nesting_depth"] - 1)
    kinds = brackets(parameters["bracket_types"])
    lines = [f"S -> S T [{split!r}] | T [{1 - split!r}]"]
    lines += [f"T -> '{left}' S '{right}' [{nest / len(kinds)!r}]" for left, right in kinds]
    lines += [f"T -> '{left}' '{right}' [{(1 - nest) / len(kinds)!r}]" for left, right in kinds]
    return "\n".join(lines)


def _hardest(parameters: Parameters) -> str:
    comma, semicolon = f(parameters["mean_commas"]), parameters["semicolon_probability"]
    short, long = f(parameters["mean_short_filler_length"]), f(parameters["mean_long_filler_length"] - 1)
    split, nest = f(parameters["mean_bracket_splits"]), f(parameters["mean_nesting_depth"])
    return f"""\
S0 -> R '$' Q S L ';'
L -> L1 ',' U
L1 -> ',' V L1 [{comma!r}] | '' [{1 - comma!r}]
R -> U ',' R1
R1 -> R1 V ',' [{comma!r}] | '' [{1 - comma!r}]
U -> W U [{short!r}] | '' [{1 - short!r}]
V -> W V [{long!r}] | W [{1 - long!r}]
W -> '(' | ')' | '[' | ']' | '$'
Q -> L ';' R [{semicolon!r}] | '' [{1 - semicolon!r}]
S -> S Q T [{split!r}] | T [{1 - split!r}]
T -> '(' Q S Q ')' [{nest / 2!r}] | '[' Q S Q ']' [{nest / 2!r}]
T -> '(' Q ')' [{(1 - nest) / 2!r}] | '[' Q ']' [{(1 - nest) / 2!r}]"""


def _mirrored(string: Word) -> list[int]:
    """The parse of w w^R or w # w^R: the symbols of w^R attach to those of w."""
    return [min(place, len(string) + 1 - place) for place in range(1, len(string) + 1)]


def _matched(string: Word) -> list[int]:
    """The parse of balanced brackets: closing brackets attach to opening ones."""
    attached, opened = [], []
    for place, symbol in enumerate(string, start=1):
        if symbol[0] in {kind[0] for kind in BRACKETS}:
            opened.append(place)
            attached.append(place)
        else:
            attached.append(opened.pop())
    return attached


def _of_word(string: Callable[[Word], Word], *others: str) -> Callable[[Parameters], Transform]:
    """A language of strings made from w, with the terminals of w and ``others``."""

    def make(parameters: Parameters) -> Transform:
        alphabet = symbols(parameters["symbol_types"])
        return Transform(alphabet, [*alphabet, *others], string)

    return make


def _two_alphabets(parameters: Parameters) -> Transform:
    number = int(parameters["symbol_types"])
    alphabet = symbols(2 * number)
    return Transform(alphabet[:number], alphabet, lambda w: w + tuple(str(int(a) + number) for a in w))


def _count(parameters: Parameters) -> Transform:
    return Transform(["a"], ["a", "b", "c"], lambda w: (*w, *"b" * len(w), *"c" * len(w)))


_TWO: Parameters = {"symbol_types": 2}
_REVERSAL: Parameters = {"symbol_types": 2, "mean_content_length": 60}
_PADDED: Parameters = {**_REVERSAL, "mean_padding_length": 30}
_DYCK: Parameters = {"bracket_types": 2, "mean_bracket_splits": 1, "mean_nesting_depth": 40}
_HARDEST: Parameters = {
    "mean_commas": 0.5,
    "mean_short_filler_length": 0.5,
    "mean_long_filler_length": 2,
    "semicolon_probability": 0.25,
    "mean_bracket_splits": 1.5,
    "mean_nesting_depth": 3,
}

LANGUAGES = {
    language.name: language
    for language in (
        Language(
            "marked-reversal",
            "w # w^R",
            _REVERSAL,
            grammar=lambda p: _reversal(p, f"'{MARK}'"),
            attachments=_mirrored,
        ),
        Language(
            "unmarked-reversal",
            "w w^R",
            _REVERSAL,
            grammar=lambda p: _reversal(p, "''"),
            attachments=_mirrored,
        ),
        Language("padded-reversal", "w a^p w^R", _PADDED, grammar=_padded_reversal),
        Language("dyck", "balanced brackets", _DYCK, grammar=_dyck, attachments=_matched),
        Language("hardest-cfl", "Greibach's hardest context-free language", _HARDEST, grammar=_hardest),
        Language("count-3", "a^n b^n c^n", {}, transform=_count),
        Language("marked-copy", "w # w", _TWO, transform=_of_word(lambda w: (*w, MARK, *w), MARK)),
        Language("unmarked-copy", "w w", _TWO, transform=_of_word(lambda w: w + w)),
        Language(
            "marked-reverse-and-copy",
            "w # w^R # w",
            _TWO,
            transform=_of_word(lambda w: (*w, MARK, *w[::-1], MARK, *w), MARK),
        ),
        Language("unmarked-reverse-and-copy", "w w^R w", _TWO, transform=_of_word(lambda w: w + w[::-1] + w)),
        Language("count-and-copy", "w #^|w| w", _TWO, transform=_of_word(lambda w: (*w, *MARK * len(w), *w), MARK)),
        Language("unmarked-copy-different-alphabets", "w, then w in other symbols", _TWO, transform=_two_alphabets),
    )
}
"""All languages by name."""
