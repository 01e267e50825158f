"""An independent reader of the sentences: letters for word classes, regular expressions for the two grammars, and both
rules by position."""

from __future__ import annotations

import re
from itertools import product
from typing import NamedTuple

QUESTIONS, TENSES = "question-formation", "tense-reinflection"

# Each verb in the plural present, the singular present and the past.
INTRANSITIVE = """
giggle giggles giggled, smile smiles smiled, sleep sleeps slept, swim swims swam, wait waits waited, move moves moved,
change changes changed, read reads read, eat eats ate"""
TRANSITIVE = """
entertain entertains entertained, amuse amuses amused, high_five high_fives high_fived,
applaud applauds applauded, confuse confuses confused, admire admires admired, accept accepts accepted,
remember remembers remembered, comfort comforts comforted"""
FORMS = [tuple(verb.split()) for verb in f"{INTRANSITIVE},{TRANSITIVE}".split(",")]

# Letters of word classes: s and p are nouns, v and w intransitive verbs, t and u transitive ones, a and b auxiliaries;
# the first of two is singular. In questions, verbs have no number: w and u.
WORDS = {
    "d": "the some my your our her",
    "o": "around near with upon by behind above below",
    "r": "who that",
    "s": "newt orangutan peacock quail raven salamander tyrannosaurus unicorn vulture walrus xylophone yak zebra",
    "p": "newts orangutans peacocks quails ravens salamanders tyrannosauruses unicorns vultures walruses xylophones "
    "yaks zebras",
    "a": "does doesn't",
    "b": "do don't",
    "v": " ".join(singular for _, singular, _ in FORMS[:9]),
    "w": " ".join(plural for plural, _, _ in FORMS[:9]),
    "t": " ".join(singular for _, singular, _ in FORMS[9:]),
    "u": " ".join(plural for plural, _, _ in FORMS[9:]),
    ".": ".",
}
CLASS = {word: letter for letter, words in WORDS.items() for word in words.split()}
PAST = {form: past for plural, singular, past in FORMS for form in (plural, singular)}
MODIFIERS = ("PP", "RO", "RSt", "RSi")


class Reading(NamedTuple):
    """The types of a sentence's subject and verb phrase, and the number of words in its subject."""

    subject: str
    verb_phrase: str
    words_in_subject: int


def read(task: str, words: tuple[str, ...]) -> Reading:
    """The one reading of a declarative sentence in the present, with its full stop."""
    letters = "".join(CLASS[word] for word in words)
    readings = set()
    for number, subject, verb_phrase in product("sp", ("simple", *MODIFIERS), ("I", "simple", *MODIFIERS)):
        if verb_phrase == "I":
            pattern = _verb(task, "I", number)
        else:
            objects = "|".join(_noun_phrase(task, verb_phrase, other) for other in "sp")
            pattern = f"{_verb(task, 'T', number)}({objects})"
        found = re.fullmatch(f"({_noun_phrase(task, subject, number)}){pattern}\\.", letters)
        if found is not None:
            readings.add(Reading(subject, verb_phrase, len(found[1])))
    (reading,) = readings
    return reading


def _verb(task: str, kind: str, number: str) -> str:
    singular = number == "s"
    if task == QUESTIONS:
        return ("a" if singular else "b") + {"I": "w", "T": "u"}[kind]
    return {"I": "v" if singular else "w", "T": "t" if singular else "u"}[kind]


def _noun_phrase(task: str, kind: str, number: str) -> str:
    return (
        f"d{number}"
        + {
            "simple": "",
            "PP": "od[sp]",
            "RO": f"rd(s{_verb(task, 'T', 's')}|p{_verb(task, 'T', 'p')})",
            "RSt": f"r{_verb(task, 'T', number)}d[sp]",
            "RSi": f"r{_verb(task, 'I', number)}",
        }[kind]
    )


def question(words: tuple[str, ...], auxiliary: int) -> tuple[str, ...]:
    """The question of a declarative sentence that fronts the auxiliary at a place."""
    return (words[auxiliary], *words[:auxiliary], *words[auxiliary + 1 : -1], "?")


def auxiliaries(words: tuple[str, ...]) -> list[int]:
    """The places of auxiliaries."""
    return [place for place, word in enumerate(words) if CLASS[word] in "ab"]


def in_the_past(words: tuple[str, ...]) -> tuple[str, ...]:
    """A sentence in the past."""
    return tuple(PAST.get(word, word) for word in words)


def agree_recent(words: tuple[str, ...]) -> tuple[str, ...]:
    """A sentence in the present, with every verb in the number of the noun before it."""
    changed = []
    for place, word in enumerate(words):
        before = [CLASS[earlier] for earlier in words[:place] if CLASS[earlier] in "sp"]
        forms = [form for form in FORMS if word in form[:2]]
        changed.append(forms[0][before[-1] == "s"] if forms else word)
    return tuple(changed)
