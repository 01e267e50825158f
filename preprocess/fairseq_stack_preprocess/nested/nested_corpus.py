"""The corpus ``nested-translation``: pairs of a German-like and an English-like sentence with nested relative
clauses.

The distribution: the nesting depth of a sentence is uniform over 0..depth; given its depth, a derivation is
drawn from the weighted grammar of :mod:`.grammar`, conditioned on having exactly that nesting. A
source sentence that was drawn before, in any split, is dropped and replaced by a new draw; test is drawn first, then
valid, then train, each from random numbers of its own, so that test and valid do not depend on the size of
train.

Files, in ``text/``: ``{train,valid,test}.de`` and ``.en``, one sentence per line, words separated by spaces;
``.align``, the word alignment as ``source-target`` positions from 0; ``.depth``, the nesting depth.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..errors import require_ranges
from ..layout import SPLITS, TEXT
from ..progress import progress
from ..text.binarise import binarise_translation
from ..text.manifest import Manifest
from ..text.output import corpus_folder, write_lines
from ..text.splits import SIZES, distinct, sizes_of, stream
from .grammar import nested_grammar
from .synchronous_grammar import SentencePair, SynchronousGrammar

CORPUS = "nested-translation"
SOURCE, TARGET = "de", "en"
GREATEST_DEPTH = 30


@dataclass(frozen=True)
class Options:
    """The options of the corpus.

    Attributes:
        depth: maximum nesting of relative clauses in train and valid.
        test_depth: maximum nesting depth in test; None: as ``depth``.
        train_size: number of pairs in train (likewise ``valid_size``, ``test_size``).
        seed: seed of the random numbers.
        binarise: whether fairseq's binary format is written as well.

    Raises:
        PrepareError: a value is out of range.
    """

    depth: int = 3
    test_depth: int | None = None
    train_size: int = 20_000
    valid_size: int = 1_000
    test_size: int = 1_000
    seed: int = 0
    binarise: bool = True

    def __post_init__(self) -> None:
        require_ranges(self, train_size=SIZES, valid_size=SIZES, test_size=SIZES, seed=(0, None))
        require_ranges(self, depth=(0, GREATEST_DEPTH), test_depth=(0, GREATEST_DEPTH))

    def depths(self) -> dict[str, int]:
        """The maximum nesting in each split."""
        test_depth = self.depth if self.test_depth is None else self.test_depth
        return {"train": self.depth, "valid": self.depth, "test": test_depth}


@dataclass
class NestedTranslation:
    """A generated corpus: the pairs of each split, and how many draws were dropped for which reason."""

    splits: dict[str, list[SentencePair]] = field(default_factory=dict)
    dropped: dict[str, Counter[str]] = field(default_factory=dict)


def generate(options: Options) -> NestedTranslation:
    """Draw the corpus; the same options give the same corpus.

    Raises:
        PrepareError: the grammar does not have as many sentences as asked for.
    """
    grammar = nested_grammar()
    sizes, depths = sizes_of(options), options.depths()
    corpus = NestedTranslation()
    taken: dict[str, str] = {}
    for split in ("test", "valid", "train"):
        dropped = Counter[str]()
        pairs = distinct(
            draws(grammar, stream(options.seed, split), depths[split]),
            key=lambda pair: " ".join(pair.source),
            size=sizes[split],
            split=split,
            taken=taken,
            dropped=dropped,
        )
        corpus.splits[split] = list(progress(pairs, label=f"{CORPUS}: {split}", total=sizes[split]))
        corpus.dropped[split] = dropped
    return corpus


def draws(grammar: SynchronousGrammar, rng: random.Random, depth: int) -> Iterator[SentencePair]:
    """Pairs without end, each of a nesting uniform over 0..``depth``, then as the grammar has it."""
    while True:
        nesting = int(rng.random() * (depth + 1))
        yield grammar.pair(grammar.sample(rng, nesting))


def prepare(options: Options, folder: Path, *, force: bool = False) -> None:
    """Write the corpus into ``folder``, complete or not at all.

    Raises:
        PrepareError: see :func:`generate` and :func:`.output.corpus_folder`; or binarising failed.
    """
    with corpus_folder(folder, binarise=options.binarise, force=force) as new:
        corpus = generate(options)
        _write_text(corpus, new / TEXT)
        if options.binarise:
            binarise_translation(new, SOURCE, TARGET)
        Manifest(
            corpus=CORPUS,
            options=asdict(options),
            splits={split: _counts(corpus.splits[split]) for split in SPLITS},
            dropped=corpus.dropped,
        ).write(new)


def _write_text(corpus: NestedTranslation, folder: Path) -> None:
    for split, pairs in corpus.splits.items():
        write_lines(folder / f"{split}.{SOURCE}", (" ".join(pair.source) for pair in pairs))
        write_lines(folder / f"{split}.{TARGET}", (" ".join(pair.target) for pair in pairs))
        write_lines(folder / f"{split}.align", (" ".join(f"{i}-{j}" for i, j in pair.alignment) for pair in pairs))
        write_lines(folder / f"{split}.depth", (str(pair.nesting) for pair in pairs))


def _counts(pairs: list[SentencePair]) -> dict[str, Any]:
    """Counts of one split for the manifest; words do not count the end of sentence."""
    return {
        "pairs": len(pairs),
        "source_words": sum(len(pair.source) for pair in pairs),
        "target_words": sum(len(pair.target) for pair in pairs),
        "longest_source": max(len(pair.source) for pair in pairs),
        "longest_target": max(len(pair.target) for pair in pairs),
        "pairs_by_depth": {str(d): n for d, n in sorted(Counter(pair.nesting for pair in pairs).items())},
    }
