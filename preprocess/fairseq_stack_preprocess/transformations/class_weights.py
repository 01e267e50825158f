"""How often the types of subjects and of verb phrases occur.

A noun phrase is ``simple`` (the yak), or has a prepositional phrase, ``PP`` (the yak by my newt), or one of three
relative clauses, named after what the relative pronoun is: ``RO``, the object (the yak that my newt does admire);
``RSt``, the subject of a transitive verb (the yak that does admire my newt); ``RSi``, the subject of an intransitive
verb (the yak that does smile). A verb phrase is intransitive, ``I``, or has an object, and then the object's type.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

SIMPLE, PREPOSITIONAL, OBJECT_RELATIVE, TRANSITIVE_RELATIVE, INTRANSITIVE_RELATIVE = "simple", "PP", "RO", "RSt", "RSi"
INTRANSITIVE = "I"

NOUN_PHRASES = (SIMPLE, PREPOSITIONAL, OBJECT_RELATIVE, TRANSITIVE_RELATIVE, INTRANSITIVE_RELATIVE)
VERB_PHRASES = (INTRANSITIVE, *NOUN_PHRASES)


@dataclass(frozen=True)
class ClassWeights:
    """The weight of each type that a subject, and a verb phrase, may have; the two are independent."""

    subjects: Mapping[str, float]
    verb_phrases: Mapping[str, float]

    def among(self, subjects: Collection[str], verb_phrases: Collection[str]) -> ClassWeights:
        """The weights of these types alone."""
        return ClassWeights(_among(self.subjects, subjects), _among(self.verb_phrases, verb_phrases))


def class_weights(subjects: Sequence[float], verb_phrases: Sequence[float]) -> ClassWeights:
    """Weights in the order of :data:`NOUN_PHRASES` and of :data:`VERB_PHRASES`."""
    return ClassWeights(
        dict(zip(NOUN_PHRASES, subjects, strict=True)), dict(zip(VERB_PHRASES, verb_phrases, strict=True))
    )


def _among(weights: Mapping[str, float], names: Collection[str]) -> dict[str, float]:
    return {name: weight for name, weight in weights.items() if name in names}


PUBLISHED = class_weights((3, 3, 1, 1, 1), (9, 3, 3, 1, 1, 1))
"""The weights of the authors' two grammars, which agree in them."""

RELEASED_QUESTIONS = class_weights((36, 15, 10, 5, 5), (3, 3, 3, 1, 1, 2))
"""The weights that the authors' training, validation and test sets of questions follow, estimated from them."""

RELEASED_TENSES = class_weights((3, 3, 1, 1, 1), (3, 3, 3, 1, 1, 1))
"""Likewise of all the authors' sets of tenses: one sentence in four is intransitive, not one in two."""
