"""The corpus ``transformations``: a hierarchical and a linear rule agree in training, and differ in ``gen``.

Train, valid and test are drawn with either marker, each with probability 1/2, and without the pairs on which the rules
differ. No pair occurs twice. The three are drawn one after the other, as the authors drew theirs: test has few short
sentences, since train has most of them. ``gen`` has only pairs on which the rules differ, and does not depend on the
other splits.

Files, in ``text/``, with a line for each pair: ``SPLIT.source`` (with the marker), ``SPLIT.target``, ``SPLIT.linear``,
the linear rule's answer, and ``SPLIT.structure``, the types of the subject and of the verb phrase (see
:mod:`.class_weights`); ``SPLIT.txt`` is source and target in one line, for language models; ``vocabulary.txt`` is the
dictionary of ``data-bin``, all words in the same order for every seed. ``data-bin`` has the pairs for translation and
the lines of ``.txt`` for language modelling.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from ..errors import PrepareError, require_ranges
from ..layout import GENERALISATION, SPLITS, SUFFIX, TEXT
from ..progress import progress
from ..text.binarise import binarise_language, binarise_translation
from ..text.manifest import Manifest
from ..text.output import corpus_folder, write_alphabet, write_columns
from ..text.splits import SIZES, distinct, stream
from .class_weights import PUBLISHED, ClassWeights
from .sentences import draw_sentence
from .tasks import TASKS, Pair, Task

CORPUS = "transformations"
SOURCE, TARGET, LINEAR, STRUCTURE = "source", "target", "linear", "structure"
RELEASED, GRAMMAR = "released", "grammar"
WEIGHTS = (RELEASED, GRAMMAR)
ALL_SPLITS = (*SPLITS, GENERALISATION)


@dataclass(frozen=True)
class Options:
    """The options of the corpus.

    Attributes:
        task: the name of one of :data:`.TASKS`.
        weights: ``released``, the class weights of the authors' data, or ``grammar``, those of their grammars.
        train_size: number of pairs in train (likewise ``valid_size``, ``test_size``, ``gen_size``).
        seed: seed of the random numbers.
        binarise: whether fairseq's binary format is written as well.

    Raises:
        PrepareError: a value is out of range.
    """

    task: str
    weights: str = RELEASED
    train_size: int = 100_000
    valid_size: int = 1_000
    test_size: int = 10_000
    gen_size: int = 10_000
    seed: int = 0
    binarise: bool = True

    def __post_init__(self) -> None:
        require_ranges(self, **{f"{split}_size": SIZES for split in ALL_SPLITS}, seed=(0, None))
        if self.task not in TASKS:
            raise PrepareError(f"--task must be one of {', '.join(TASKS)}, got {self.task!r}")
        if self.weights not in WEIGHTS:
            raise PrepareError(f"--weights must be one of {', '.join(WEIGHTS)}, got {self.weights!r}")

    def definition(self) -> Task:
        """The task."""
        return TASKS[self.task]

    def class_weights(self, split: str) -> ClassWeights:
        """The weights of the types of phrases from which a split is drawn."""
        task = self.definition()
        released = task.released_gen if split == GENERALISATION else task.released
        return PUBLISHED if self.weights == GRAMMAR else released

    def sizes(self) -> dict[str, int]:
        """The number of pairs in each split."""
        return {split: getattr(self, f"{split}_size") for split in ALL_SPLITS}


@dataclass(frozen=True)
class TransformationCorpus:
    """A generated corpus: the pairs of each split, and how many draws were dropped for which reason."""

    splits: Mapping[str, Sequence[Pair]]
    dropped: Mapping[str, Counter[str]]


def generate(options: Options) -> TransformationCorpus:
    """Draw the corpus; the same options give the same corpus.

    Raises:
        PrepareError: there are not as many pairs as asked for.
    """
    taken: dict[str, str] = {}
    splits, dropped = {}, {split: Counter[str]() for split in ALL_SPLITS}
    for split, size in options.sizes().items():
        draw = _generalisation if split == GENERALISATION else _ambiguous
        pairs = draw(options, split, taken, dropped[split])
        splits[split] = list(progress(pairs, label=f"{CORPUS}: {split}", total=size, unit="pair"))
    return TransformationCorpus(splits, dropped)


def _ambiguous(options: Options, split: str, taken: dict[str, str], dropped: Counter[str]) -> Iterator[Pair]:
    """The pairs of a split on which the rules agree."""
    rng, task, weights = stream(options.seed, split), options.definition(), options.class_weights(split)
    draws = ambiguous_draws(rng, task, weights, dropped)
    return distinct(draws, key=_key, size=options.sizes()[split], split=split, taken=taken, dropped=dropped)


def ambiguous_draws(rng: random.Random, task: Task, weights: ClassWeights, dropped: Counter[str]) -> Iterator[Pair]:
    """Pairs without end on which the rules agree; ``dropped`` counts the others."""
    while True:
        sentence = draw_sentence(rng, weights, task.finite)
        pair = task.pair(sentence, transforms=rng.random() < 0.5)
        if pair.target == pair.linear:
            yield pair
        else:
            dropped["the rules differ"] += 1


def _generalisation(options: Options, split: str, taken: dict[str, str], dropped: Counter[str]) -> Iterator[Pair]:
    """The pairs of the generalisation set: one of each group of types of subjects in turn."""
    rng, task, size = stream(options.seed, split), options.definition(), options.sizes()[split]
    groups = {
        subjects: distinct(
            _deciding_draws(rng, task, options.class_weights(split).among(subjects, task.gen_verb_phrases)),
            key=_key,
            size=size,
            split=split,
            taken=taken,
            dropped=dropped,
        )
        for subjects in task.gen_subjects
    }
    for subjects in islice(cycle(task.gen_subjects), size):
        yield next(groups[subjects])


def _deciding_draws(rng: random.Random, task: Task, weights: ClassWeights) -> Iterator[Pair]:
    """Pairs without end on which the rules differ as in the generalisation set."""
    while True:
        pair = task.pair(draw_sentence(rng, weights, task.finite), transforms=True)
        if task.decides(pair.target, pair.linear):
            yield pair


def _key(pair: Pair) -> str:
    """What no two pairs share: the sentence and its marker decide the target."""
    return " ".join(pair.source)


def prepare(options: Options, folder: Path, *, force: bool = False) -> None:
    """Write the corpus into ``folder``, complete or not at all.

    Raises:
        PrepareError: see :func:`generate` and :func:`.output.corpus_folder`; or binarising failed.
    """
    with corpus_folder(folder, binarise=options.binarise, force=force) as new:
        corpus = generate(options)
        for split, pairs in corpus.splits.items():
            _write_pairs(new / TEXT, split, pairs)
        vocabulary = write_alphabet(new, options.definition().vocabulary)
        if options.binarise:
            binarise_language(new, dictionary=vocabulary, further=(GENERALISATION,))
            binarise_translation(new, SOURCE, TARGET, dictionaries=[vocabulary], further=(GENERALISATION,))
        Manifest(
            corpus=CORPUS,
            options=asdict(options),
            splits={split: _counts(pairs) for split, pairs in corpus.splits.items()},
            dropped=corpus.dropped,
            more={"class_weights": {split: asdict(options.class_weights(split)) for split in ALL_SPLITS}},
        ).write(new)


def _write_pairs(folder: Path, split: str, pairs: Sequence[Pair]) -> None:
    paths = (folder / f"{split}.{name}" for name in (SUFFIX, SOURCE, TARGET, LINEAR, STRUCTURE))
    rows = ((pair.source + pair.target, pair.source, pair.target, pair.linear, pair.structure) for pair in pairs)
    write_columns(paths, (map(" ".join, row) for row in rows))


def _counts(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Counts of one split for the manifest; words are those of source and target, without ends of sentences."""
    lengths = [len(pair.source) + len(pair.target) for pair in pairs]
    return {
        "pairs": len(pairs),
        "words": sum(lengths),
        "longest": max(lengths),
        "pairs_by_marker": dict(sorted(Counter(pair.source[-1] for pair in pairs).items())),
        "pairs_by_structure": dict(sorted(Counter(" ".join(pair.structure) for pair in pairs).items())),
    }
