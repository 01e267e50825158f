"""The corpus ``transduction``: training, validation and test sets of a generated task.

Train and valid are drawn with replacement: strings are uniform given their length, or uniform over the distinct strings
of a grammar up to a depth. Test is the authors' test set (:mod:`.authors`), or drawn: strings of a grammar are then
uniform over derivations, and none occurs twice except where the authors' test set could have one twice.
Files: see :mod:`.pair_files`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ..errors import PrepareError, flag_of
from ..layout import SPLITS
from ..progress import progress
from ..text.binarise import binarise_translation
from ..text.manifest import Manifest
from ..text.output import corpus_folder
from ..text.splits import distinct, sizes_of, stream
from .authors import TEST_SETS
from .pair_files import SOURCE, TARGET, write_pairs, write_task
from .pairs import Alphabet, Pair, Source
from .task_options import AUTHORS, CORPUS, GREATEST_LENGTH, Options

__all__ = ["CORPUS", "Options", "generate", "prepare"]


@dataclass(frozen=True)
class TransductionCorpus:
    """A generated corpus.

    Attributes:
        alphabet: the symbols of all pairs.
        longest: for each split, the number of symbols of the longest input that could be in it.
        splits: the pairs.
        dropped: how many draws were dropped for which reason.
    """

    alphabet: Alphabet
    longest: Mapping[str, int]
    splits: Mapping[str, Sequence[Pair]]
    dropped: Mapping[str, Counter[str]]


def sources(options: Options) -> dict[str, Source]:
    """What the pairs of each split are drawn from.

    Raises:
        PrepareError: a depth has no string, or strings that are too long.
    """
    task = options.definition()
    training = task.training(options.settings("train"))
    by_split = {"train": training, "valid": training, "test": task.testing(options.settings("test"))}
    for name, split in (("depth", "train"), ("test_depth", "test")):
        depth, longest = getattr(options, name), by_split[split].longest
        if depth is not None and longest == 0:
            raise PrepareError(f"{flag_of(name)} {depth}: {task.name} has no string of this depth; give a larger one")
        if depth is not None and longest > GREATEST_LENGTH:
            raise PrepareError(
                f"{flag_of(name)} {depth}: strings of {task.name} have up to {longest} symbols at this depth; at most "
                f"{GREATEST_LENGTH} are allowed"
            )
    return by_split


def generate(options: Options) -> TransductionCorpus:
    """Draw the corpus; the same options give the same corpus.

    Raises:
        PrepareError: see :func:`sources`; or the task has fewer distinct strings than test is to have.
    """
    dropped = {split: Counter[str]() for split in SPLITS}
    by_split = sources(options)
    splits = {}
    for split, source in by_split.items():
        size = sizes_of(options)[split]
        pairs = _pairs(options, split, source, size, dropped[split])
        splits[split] = list(progress(pairs, label=f"{CORPUS}: {split}", total=size, unit="pair"))
    longest = {split: source.longest for split, source in by_split.items()}
    return TransductionCorpus(by_split["train"].alphabet, longest, splits, dropped)


def _pairs(options: Options, split: str, source: Source, size: int, dropped: Counter[str]) -> Iterator[Pair]:
    if split == "test" and options.test_set == AUTHORS:
        return iter(TEST_SETS[options.task]()[:size])
    seed = options.test_seed if split == "test" else options.seed
    rng = stream(seed or 0, split)
    draws = iter(lambda: source.draw(rng), None)  # without end
    if split != "test" or options.definition().repeats:
        return itertools.islice(draws, size)
    return distinct(draws, key=_input_text, size=size, split=split, taken={}, dropped=dropped)


def _input_text(pair: Pair) -> str:
    return " ".join(pair.input)


def prepare(options: Options, folder: Path, *, force: bool = False) -> None:
    """Write the corpus into ``folder``, complete or not at all.

    Raises:
        PrepareError: see :func:`generate` and :func:`.output.corpus_folder`; or binarising failed.
    """
    with corpus_folder(folder, binarise=options.binarise, force=force) as new:
        corpus = generate(options)
        dictionary = write_task(new, options.task, corpus.alphabet, corpus.longest)
        splits = {
            split: {**write_pairs(new, split, pairs, corpus.alphabet), "distinct_inputs": len({p.input for p in pairs})}
            for split, pairs in corpus.splits.items()
        }
        if options.binarise:
            binarise_translation(new, SOURCE, TARGET, dictionaries=[dictionary])
        Manifest(
            corpus=CORPUS,
            options=asdict(options),
            splits=splits,
            dropped=corpus.dropped,
        ).write(new)
