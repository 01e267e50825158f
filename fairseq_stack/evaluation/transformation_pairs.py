"""The pairs of a corpus of ``fairseq-stack prepare transformations``, and the words that tell its two rules apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairseq_stack.errors import UserError
from fairseq_stack.files import read_lines
from fairseq_stack_preprocess.layout import MANIFEST_NAME, TEXT
from fairseq_stack_preprocess.transformations.class_weights import PREPOSITIONAL, SIMPLE
from fairseq_stack_preprocess.transformations.sentences import AUXILIARIES, NUMBERS, VERBS, Words
from fairseq_stack_preprocess.transformations.tasks import (
    QUESTION_FORMATION,
    TASKS,
    TENSE_REINFLECTION,
    Pair,
    Task,
    present,
)
from fairseq_stack_preprocess.transformations.transformation_corpus import CORPUS, LINEAR, SOURCE, STRUCTURE, TARGET

from .manifest import corpus_at, read_manifest

_ALL_AUXILIARIES = AUXILIARIES[0] + AUXILIARIES[1]
_FORMS = [tuple(present(verb, number) for number in NUMBERS) for verb in VERBS]
_RIVALS: dict[str, dict[str, Words]] = {
    QUESTION_FORMATION.name: dict.fromkeys(_ALL_AUXILIARIES, _ALL_AUXILIARIES),
    TENSE_REINFLECTION.name: {form: forms for forms in _FORMS for form in forms},
}
"""For each task the words that can be deciding ones, and those that compete with each."""


@dataclass(frozen=True)
class DecidingWord:
    """The word of a target that tells the rules apart: the first word of a question, the main verb in the present.

    Attributes:
        place: its place in the target, from 0.
        rivals: the words that compete for this place, the right one among them: the four auxiliaries, or the singular
            and the plural of the verb.
    """

    place: int
    rivals: Words


@dataclass(frozen=True)
class TransformationPairs:
    """A split of a corpus.

    Attributes:
        task: the task.
        pairs: the pairs, at least one.
        deciding_words: that of each pair; None where the marker asks for the sentence itself.
        dictionaries: the folder of the dictionaries; None if the corpus was not binarised.
    """

    task: Task
    pairs: Sequence[Pair]
    deciding_words: Sequence[DecidingWord | None]
    dictionaries: Path | None


def read_transformations(folder: Path, split: str) -> TransformationPairs:
    """Read a split of a corpus.

    Args:
        folder: the folder of the corpus, or its ``data-bin``.
        split: its name.

    Raises:
        UserError: the folder holds no such corpus, or the corpus has no such split.
    """
    root, dictionaries = corpus_at(folder)
    manifest = read_manifest(root)
    if manifest.get("corpus") != CORPUS:
        raise UserError(
            f"{folder} is not a corpus of fairseq-stack prepare {CORPUS}: expected {MANIFEST_NAME} of such a corpus"
        )
    task = TASKS[manifest["options"]["task"]]
    pairs, words = zip(*_read_pairs(root / TEXT, split, task), strict=True)
    return TransformationPairs(task, pairs, words, dictionaries)


def _read_pairs(folder: Path, split: str, task: Task) -> Iterator[tuple[Pair, DecidingWord | None]]:
    paths = [folder / f"{split}.{name}" for name in (SOURCE, TARGET, LINEAR, STRUCTURE)]
    if not paths[0].is_file():
        known = sorted(path.stem for path in folder.glob(f"*.{SOURCE}"))
        raise UserError(f"{folder.parent} has no split {split!r}; it has {', '.join(known) or 'none'}")
    columns = ([tuple(line.split()) for line in read_lines(path)] for path in paths)
    for source, target, linear, (subject, verb_phrase) in zip(*columns, strict=True):
        pair = Pair(source, target, linear, (subject, verb_phrase))
        yield pair, deciding_word(task, pair)


def deciding_word(task: Task, pair: Pair) -> DecidingWord | None:
    """The deciding word of a pair; None if its marker asks for the sentence itself."""
    if pair.source[-1] != task.markers[1]:
        return None
    rivals = _RIVALS[task.name]
    places = [place for place, word in enumerate(pair.target) if word in rivals]
    # The verb of a relative clause on the subject comes before the main verb, but the main auxiliary is fronted.
    after_clause = task is TENSE_REINFLECTION and pair.structure[0] not in (SIMPLE, PREPOSITIONAL)
    place = places[after_clause]
    return DecidingWord(place, rivals[pair.target[place]])
