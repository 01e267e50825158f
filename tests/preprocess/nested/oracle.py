"""A hand-written parser of the German-like language that translates what it reads: the generator's judge.

Of the generator it takes the lists of nouns, verbs, adverbs and adjectives only: neither the syntax nor the
inflection of determiners, pronouns and adjectives. It finds every reading of a sentence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fairseq_stack_preprocess.nested.grammar import ADJECTIVES, ADVERBS, NOUNS, VERBS
from fairseq_stack_preprocess.nested.rule_table import table_rows

Form = tuple[str, str, str]  # case, gender, number


def _forms(text: str) -> set[Form]:
    """``"nom m, dat f, acc *"`` -> forms; ``*`` is the plural, of any gender."""
    forms = set()
    for item in text.split(", "):
        case, gender = item.split()
        forms |= {(case, g, "pl") for g in "mfn"} if gender == "*" else {(case, gender, "sg")}
    return forms


THE = {
    "der": _forms("nom m, dat f"),
    "die": _forms("nom f, acc f, nom *, acc *"),
    "das": _forms("nom n, acc n"),
    "den": _forms("acc m, dat *"),
    "dem": _forms("dat m, dat n"),
}
THIS = {
    "dieser": THE["der"],
    "diese": THE["die"],
    "dieses": THE["das"],
    "diesen": THE["den"],
    "diesem": THE["dem"],
}
WHO = {**THE, "den": _forms("acc m"), "denen": _forms("dat *")}
ADJECTIVE_E = _forms("nom m, nom f, nom n, acc f, acc n")
ADJECTIVE_EN = _forms("acc m, dat m, dat f, dat n, nom *, acc *, dat *")


def _nouns() -> dict[str, list[tuple[Form, str]]]:
    nouns: dict[str, list[tuple[Form, str]]] = {}
    for gender, singular, plural, dative, one, many in table_rows(NOUNS):
        for case in ("nom", "acc", "dat"):
            nouns.setdefault(singular, []).append(((case, gender, "sg"), one))
            form = dative if case == "dat" else plural
            nouns.setdefault(form, []).append(((case, gender, "pl"), many))
    return nouns


NOUN = _nouns()
FINITE = {}  # form -> number, case of the object, English
PARTICIPLE = {}  # form -> case of the object, English
for _case, _one, _many, _participle, _en_one, _en_many, _en_participle in table_rows(VERBS):
    FINITE[_one] = "sg", _case, _en_one
    FINITE[_many] = "pl", _case, _en_many
    PARTICIPLE[_participle] = _case, _en_participle
AUXILIARY = {"hat": ("sg", "has"), "haben": ("pl", "have")}
ADVERB = {row[0]: row[1] for row in table_rows(ADVERBS)}
ADJECTIVE = {
    stem + ending: (forms, english)
    for stem, english in table_rows(ADJECTIVES)
    for ending, forms in (("e", ADJECTIVE_E), ("en", ADJECTIVE_EN))
}


class Phrase(NamedTuple):
    """A noun phrase or clause that was read: where it ends, its number, its translation, its nesting."""

    end: int
    number: str
    english: str
    nesting: int


def readings(words: Sequence[str]) -> list[tuple[str, int]]:
    """All readings of a sentence, each as (translation, nesting).

    A clause that can be read with its subject first is not read with its object first.
    """
    parser = _Parser(words)
    return list(parser.subject_first()) or list(parser.object_first())


class _Parser:
    def __init__(self, words: Sequence[str]) -> None:
        self.words = [*words, "<end>", "<end>", "<end>"]
        self.stop = len(words) - 1

    def ends(self, i: int) -> bool:
        return i == self.stop and self.words[i] == "."

    def subject_first(self) -> Iterator[tuple[str, int]]:
        adverb = ADVERB.get(self.words[0])
        if adverb is None:
            for subject in self.noun_phrase(0, "nom"):
                yield from self.rest(subject.end, subject.end + 1, subject, [])
        else:
            for subject in self.noun_phrase(2, "nom"):
                yield from self.rest(1, subject.end, subject, [adverb])

    def rest(self, verb: int, i: int, subject: Phrase, before: list[str]) -> Iterator[tuple[str, int]]:
        """The clause with its finite verb at ``verb`` and what follows verb and subject at ``i``."""
        number, case, english = FINITE.get(self.words[verb], ("", "", ""))
        if number == subject.number:
            if case == "-" and self.ends(i):
                yield " ".join([*before, subject.english, english, "."]), subject.nesting
            for other in self.noun_phrase(i, case):
                if self.ends(other.end):
                    words = [*before, subject.english, english, other.english, "."]
                    yield " ".join(words), max(subject.nesting, other.nesting)
        number, english = AUXILIARY.get(self.words[verb], ("", ""))
        if number == subject.number:
            case, participle = PARTICIPLE.get(self.words[i], ("", ""))
            if case == "-" and self.ends(i + 1):
                yield " ".join([*before, subject.english, english, participle, "."]), subject.nesting
            for case in ("acc", "dat"):
                for other in self.noun_phrase(i, case):
                    governed, participle = PARTICIPLE.get(self.words[other.end], ("", ""))
                    if governed == case and self.ends(other.end + 1):
                        words = [*before, subject.english, english, participle, other.english, "."]
                        yield " ".join(words), max(subject.nesting, other.nesting)

    def object_first(self) -> Iterator[tuple[str, int]]:
        for case in ("acc", "dat"):
            for other in self.noun_phrase(0, case):
                number, governed, english = FINITE.get(self.words[other.end], ("", "", ""))
                for subject in self.noun_phrase(other.end + 1, "nom"):
                    if (number, governed) == (subject.number, case) and self.ends(subject.end):
                        words = f"{subject.english} {english} {other.english} ."
                        yield words, max(subject.nesting, other.nesting)

    def noun_phrase(self, i: int, case: str) -> Iterator[Phrase]:
        if i >= self.stop:
            return
        word = self.words[i]
        forms = THE.get(word) or THIS.get(word) or set()
        adjective_forms, adjective = ADJECTIVE.get(self.words[i + 1], (None, ""))
        noun_at = i + 1 if adjective_forms is None else i + 2
        for form, noun in NOUN.get(self.words[noun_at], []):
            if form[0] != case or form not in forms or form not in (adjective_forms or forms):
                continue
            determiner = "the" if word in THE else {"sg": "this", "pl": "these"}[form[2]]
            english = " ".join(filter(None, [determiner, adjective, noun]))
            if self.words[noun_at + 1] != ",":
                yield Phrase(noun_at + 1, form[2], english, 0)
                continue
            for clause in self.relative_clause(noun_at + 2, form[1], form[2]):
                end = self.after_relative_clause(clause.end)
                if end is not None:
                    yield Phrase(end, form[2], f"{english} that {clause.english}", clause.nesting + 1)

    def after_relative_clause(self, i: int) -> int | None:
        """A comma closes the clause, unless the full stop does."""
        if self.ends(i):
            return i
        return i + 1 if self.words[i] == "," and self.words[i + 1] != "." else None

    def relative_clause(self, i: int, gender: str, number: str) -> Iterator[Phrase]:
        forms = WHO.get(self.words[i], set())
        if ("nom", gender, number) in forms:
            for end, case, english in self.verbs(i + 1, number):
                if case == "-":
                    yield Phrase(end, "", english, 0)
            for case in ("acc", "dat"):
                for other in self.noun_phrase(i + 1, case):
                    for end, governed, english in self.verbs(other.end, number):
                        if governed == case:
                            yield Phrase(end, "", f"{english} {other.english}", other.nesting)
        for case in ("acc", "dat"):
            if (case, gender, number) in forms:
                for subject in self.noun_phrase(i + 1, "nom"):
                    for end, governed, english in self.verbs(subject.end, subject.number):
                        if governed == case:
                            yield Phrase(end, "", f"{subject.english} {english}", subject.nesting)

    def verbs(self, i: int, number: str) -> Iterator[tuple[int, str, str]]:
        """The verbs at the end of a clause with a subject of ``number``: end, case of the object, English."""
        finite_number, case, english = FINITE.get(self.words[i], ("", "", ""))
        if finite_number == number:
            yield i + 1, case, english
        case, participle = PARTICIPLE.get(self.words[i], ("", ""))
        auxiliary_number, auxiliary = AUXILIARY.get(self.words[i + 1], ("", ""))
        if participle and auxiliary_number == number:
            yield i + 2, case, f"{auxiliary} {participle}"


def dictionary() -> dict[str, set[str]]:
    """The possible translations of each German word."""
    words: dict[str, set[str]] = {".": {"."}}
    for forms, english in ((THE, {"the"}), (THIS, {"this", "these"}), (WHO, {"that"})):
        for word in forms:
            words.setdefault(word, set()).update(english)
    for word, nouns in NOUN.items():
        words[word] = {english for _, english in nouns}
    words |= {word: {english} for word, (_, _, english) in FINITE.items()}
    words |= {word: {english} for word, (_, english) in [*PARTICIPLE.items(), *AUXILIARY.items()]}
    words |= {word: {english} for word, (_, english) in ADJECTIVE.items()}
    words |= {word: {english} for word, english in ADVERB.items()}
    return words
