"""The task ``bounded-dyck`` of ``prepare cfl``: balanced brackets of bounded depth with their parses.

The generator is the one of Murty et al. (2023), Section 4.1. When no bracket is open, a string ends with probability
1/2, unless it is shorter than ``min_length``, and otherwise opens a bracket. When ``max_depth`` brackets are open, it
closes one. Otherwise it closes one with probability 1/2. The types of opening brackets are uniform. Strings longer than
``max_length`` are drawn again.

Files, for each set, one line per string: ``.txt``, and ``.attach``, r_1..r_n as ``prepare treebank`` writes them. A
closing bracket attaches to its opening one, which joins what is closed between them; an opening bracket attaches to
itself. Adjacent groups are therefore not joined. ``text/vocabulary.txt`` is the dictionary of ``data-bin``.

Two further sets are text only. ``distance`` has strings of a larger depth, drawn by the same generator. ``depth`` has
for each depth d a few strings of d opening brackets and d closing ones, with a string of ``test`` inserted at a random
place before the last bracket.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

from ..errors import require_ranges
from ..layout import SPLITS, SUFFIX, TEXT
from ..progress import progress
from ..text.binarise import binarise_language
from ..text.manifest import Manifest
from ..text.output import corpus_folder, write_alphabet, write_lines
from ..text.splits import SIZES, pick, sizes_of, stream
from .language_options import CORPUS
from .languages import PARAMETERS, Word
from .string_sets import counts_of

TASK = "bounded-dyck"
GREATEST_LENGTH = 10_000
DISTANCE, DEPTH = "distance", "depth"
TYPES_OF_DEPTH = 10
LETTERS = "abcdefghijklmnopqrstuvwxyz"

Attached = tuple[int, ...]


@dataclass(frozen=True)
class Options:
    """The options of the corpus.

    Attributes:
        bracket_types: number of types of brackets.
        max_depth: maximum number of open brackets.
        min_length: minimum length of strings.
        max_length: maximum length of strings.
        train_size: number of strings in train (likewise ``valid_size``, ``test_size``).
        distance_size: number of strings in ``distance``.
        distance_max_depth: their maximum depth (likewise ``distance_max_length``).
        depth_from: the least depth in ``depth``.
        depth_to: the maximum depth in ``depth``.
        depth_strings: number of strings of each depth in ``depth``.
        seed: seed of train and valid.
        test_seed: seed of the other sets.
        binarise: whether fairseq's binary format is written as well.

    Raises:
        PrepareError: a value is out of range.
    """

    bracket_types: int = 20
    max_depth: int = 10
    min_length: int = 4
    max_length: int = 600
    train_size: int = 100_000
    valid_size: int = 2_000
    test_size: int = 2_000
    distance_size: int = 1_000
    distance_max_depth: int = 40
    distance_max_length: int = 500
    depth_from: int = 15
    depth_to: int = 49
    depth_strings: int = 3
    seed: int = 0
    test_seed: int = 0
    binarise: bool = True

    def __post_init__(self) -> None:
        require_ranges(self, train_size=SIZES, valid_size=SIZES, test_size=SIZES, distance_size=SIZES)
        PARAMETERS["bracket_types"].check("bracket_types", self.bracket_types)
        positive = ("max_depth", "min_length", "distance_max_depth", "depth_from", "depth_strings")
        require_ranges(self, **dict.fromkeys(positive, (1, None)), seed=(0, None), test_seed=(0, None))
        lengths = self.min_length + self.min_length % 2, GREATEST_LENGTH
        require_ranges(self, max_length=lengths, distance_max_length=lengths)
        require_ranges(self, depth_to=(self.depth_from, GREATEST_LENGTH))


def is_bounded_dyck(manifest: Mapping[str, Any] | None) -> bool:
    """Whether a corpus is of this task, by its manifest."""
    return manifest is not None and manifest.get("corpus") == CORPUS and manifest.get("options", {}).get("task") == TASK


def brackets(types: int) -> list[tuple[str, str]]:
    """Opening and closing brackets of each type, as the authors write them: ``(a``, ``a)``, ..., ``(z``, ``(aa``."""
    return [(f"({name}", f"{name})") for name in map(_name, range(types))]


def _name(number: int) -> str:
    name = LETTERS[number % len(LETTERS)]
    return name if number < len(LETTERS) else _name(number // len(LETTERS) - 1) + name


def attachments(string: Sequence[str]) -> Attached:
    """r_1, ..., r_n: a closing bracket attaches to its opening one, and opening brackets to themselves.

    Raises:
        ValueError: a closing bracket has no opening one of its type. Brackets that are never closed are no error.
    """
    stack: list[tuple[int, str]] = []
    attached = []
    for place, symbol in enumerate(string, start=1):
        if symbol.startswith("("):
            stack.append((place, symbol))
            attached.append(place)
        elif not stack or stack[-1][1] != f"({symbol[:-1]}":
            raise ValueError(f"symbol {place}, {symbol!r}, closes no bracket")
        else:
            attached.append(stack.pop()[0])
    return tuple(attached)


def draw_string(
    rng: random.Random, pairs: Sequence[tuple[str, str]], *, max_depth: int, min_length: int, max_length: int
) -> Word:
    """One string of the distribution that this module describes."""
    while True:
        string: list[str] = []
        closing: list[str] = []
        while len(string) + len(closing) <= max_length:
            if not closing and len(string) >= min_length and rng.random() < 0.5:
                return tuple(string)
            if closing and (len(closing) == max_depth or rng.random() < 0.5):
                string.append(closing.pop())
            else:
                left, right = pick(rng, pairs)
                string.append(left)
                closing.append(right)


def generate(options: Options) -> dict[str, list[Word]]:
    """Draw all sets; the same options give the same strings."""
    pairs = brackets(options.bracket_types)

    def drawn(name: str, size: int, seed: int, max_depth: int, max_length: int) -> list[Word]:
        rng, limits = stream(seed, name), {"max_depth": max_depth, "max_length": max_length}
        strings = (draw_string(rng, pairs, min_length=options.min_length, **limits) for _ in range(size))
        return list(progress(strings, label=f"{CORPUS}: {name}", total=size))

    sets = {
        split: drawn(
            split, size, options.test_seed if split == "test" else options.seed, options.max_depth, options.max_length
        )
        for split, size in sizes_of(options).items()
    }
    further = options.distance_max_depth, options.distance_max_length
    sets[DISTANCE] = drawn(DISTANCE, options.distance_size, options.test_seed, *further)
    sets[DEPTH] = list(_deep_strings(options, pairs, sets["test"]))
    return sets


def _deep_strings(options: Options, pairs: Sequence[tuple[str, str]], inserted: Sequence[Word]) -> Iterator[Word]:
    """For each depth some strings of nested brackets of a few types, each around or after a string of ``inserted``."""
    rng = stream(options.test_seed, DEPTH)
    few = pairs[:TYPES_OF_DEPTH]
    for depth in range(options.depth_from, options.depth_to + 1):
        for _ in range(options.depth_strings):
            chosen = [pick(rng, few) for _ in range(depth)]
            nested = [*(left for left, _ in chosen), *(right for _, right in reversed(chosen))]
            place = int(rng.random() * 2 * depth)
            yield (*nested[:place], *pick(rng, inserted), *nested[place:])


def prepare(options: Options, folder: Path, *, force: bool = False) -> None:
    """Write the corpus into ``folder``, complete or not at all.

    Raises:
        PrepareError: see :func:`.output.corpus_folder`; or binarising failed.
    """
    with corpus_folder(folder, binarise=options.binarise, force=force) as new:
        sets = generate(options)
        text = new / TEXT
        for name, strings in sets.items():
            write_lines(text / f"{name}.{SUFFIX}", map(" ".join, strings))
            write_lines(text / f"{name}.attach", (" ".join(map(str, attachments(string))) for string in strings))
        dictionary = write_alphabet(new, chain.from_iterable(brackets(options.bracket_types)))
        if options.binarise:
            binarise_language(new, dictionary=dictionary)
        Manifest(
            corpus=CORPUS,
            options={"task": TASK, **asdict(options)},
            splits={split: _counts(sets[split]) for split in SPLITS},
            more={"further_test_sets": {name: _counts(sets[name]) for name in (DISTANCE, DEPTH)}},
        ).write(new)


def _counts(strings: Sequence[Word]) -> dict[str, Any]:
    """Counts of one set for the manifest."""
    longest, most_open = max(map(len, strings)), max(map(_most_open, strings))
    return {**counts_of(strings), "longest": longest, "most_open": most_open}


def _most_open(string: Word) -> int:
    """The maximum number of brackets that are open at a time."""
    return max(accumulate(1 if symbol.startswith("(") else -1 for symbol in string))
