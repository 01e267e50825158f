"""The pairs of a corpus of ``fairseq-stack prepare transformations``, and the words that tell its two rules apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairseq_stack.errors import UserError
from fairseq_stack.files import read_lines
from fairseq_stack_preprocess.layout import DATA_BIN, MANIFEST_NAME, TEXT
from fairseq_stack_preprocess.transformations.class_weights import NOUN_PHRASES, PREPOSITIONAL, SIMPLE, VERB_PHRASES
from fairseq_stack_preprocess.transformations.sentences import (
    AUXILIARIES,
    DETERMINERS,
    NOUNS,
    NUMBERS,
    PREPOSITIONS,
    PRONOUNS,
    VERBS,
    Words,
)
from fairseq_stack_preprocess.transformations.tasks import (
    PAST_FORMS,
    QUESTION_FORMATION,
    TASKS,
    TENSE_REINFLECTION,
    Pair,
    Task,
    present,
)
from fairseq_stack_preprocess.transformations.transformation_corpus import CORPUS, LINEAR, SOURCE, STRUCTURE, TARGET

from .manifest import read_manifest

_ALL_AUXILIARIES = AUXILIARIES[0] + AUXILIARIES[1]
_FORMS = [tuple(present(verb, number) for number in NUMBERS) for verb in VERBS]
_RIVALS: dict[str, dict[str, Words]] = {
    QUESTION_FORMATION.name: dict.fromkeys(_ALL_AUXILIARIES, _ALL_AUXILIARIES),
    TENSE_REINFLECTION.name: {form: forms for forms in _FORMS for form in forms},
}
"""For each task the words that can be deciding ones, and those that compete with each."""
_VERB_FORMS = (*sum(_FORMS, ()), *PAST_FORMS)
_CLASSES = (DETERMINERS, NOUNS[0] + NOUNS[1], _VERB_FORMS, _ALL_AUXILIARIES, PREPOSITIONS, PRONOUNS, (".", "?"))
_CLASS_OF = {word: number for number, words in enumerate(_CLASSES) for word in words}
"""The class of each word, whatever its number and tense."""


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

    def is_in(self, words: Sequence[str], target: Words) -> bool:
        """Whether words have the classes of the target, and its deciding word in the same place."""
        same_classes = [_CLASS_OF.get(word) for word in words] == [_CLASS_OF[word] for word in target]
        return same_classes and words[self.place] == target[self.place]


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
        UserError: the folder holds no such corpus, the corpus has no such split, or a file of the split is missing or
            does not fit.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder")
    root = folder.parent if folder.name == DATA_BIN and not (folder / MANIFEST_NAME).is_file() else folder
    manifest = read_manifest(root) or {}
    if manifest.get("corpus") != CORPUS:
        raise UserError(
            f"{folder} is not a corpus of fairseq-stack prepare {CORPUS}: expected {MANIFEST_NAME} of such a corpus"
        )
    name = str(manifest.get("options", {}).get("task"))
    if name not in TASKS:
        raise UserError(f"{root / MANIFEST_NAME}: expected the task {' or '.join(TASKS)}, got {name}")
    pairs, words = zip(*_read_pairs(root / TEXT, split, TASKS[name]), strict=True)
    dictionaries = root / DATA_BIN
    return TransformationPairs(TASKS[name], pairs, words, dictionaries if dictionaries.is_dir() else None)


def _read_pairs(folder: Path, split: str, task: Task) -> Iterator[tuple[Pair, DecidingWord | None]]:
    paths = [folder / f"{split}.{name}" for name in (SOURCE, TARGET, LINEAR, STRUCTURE)]
    if not paths[0].is_file():
        known = sorted(path.stem for path in folder.glob(f"*.{SOURCE}"))
        raise UserError(f"{folder.parent} has no split {split!r}; it has {', '.join(known) or 'none'}")
    for path in paths:
        if not path.is_file():
            raise UserError(f"{path} is missing; prepare the data again")
    columns = [[tuple(line.split()) for line in read_lines(path)] for path in paths]
    for path, column in zip(paths, columns, strict=True):
        if len(column) != len(columns[0]):
            raise UserError(f"{path} has {len(column)} lines: expected {len(columns[0])}, as many as {paths[0].name}")
    for number, (source, target, linear, structure) in enumerate(zip(*columns, strict=True), start=1):
        if not source or source[-1] not in task.markers:
            raise UserError(f"{paths[0]}, line {number}: expected a sentence and {' or '.join(task.markers)}")
        if len(structure) != 2 or structure[0] not in NOUN_PHRASES or structure[1] not in VERB_PHRASES:
            raise UserError(f"{paths[3]}, line {number}: expected the types of subject and verb phrase, as RO I")
        pair = Pair(source, target, linear, (structure[0], structure[1]))
        try:
            yield pair, deciding_word(task, pair)
        except IndexError as error:
            raise UserError(f"{paths[1]}, line {number}: expected an answer of {task.name}") from error


def deciding_word(task: Task, pair: Pair) -> DecidingWord | None:
    """The deciding word of a pair; None if its marker asks for the sentence itself.

    Raises:
        IndexError: the target has none.
    """
    if pair.source[-1] != task.markers[1]:
        return None
    rivals = _RIVALS[task.name]
    places = [place for place, word in enumerate(pair.target) if word in rivals]
    # The verb of a relative clause on the subject comes before the main verb, but the main auxiliary is fronted.
    after_clause = task is TENSE_REINFLECTION and pair.structure[0] not in (SIMPLE, PREPOSITIONAL)
    place = places[after_clause]
    return DecidingWord(place, rivals[pair.target[place]])
