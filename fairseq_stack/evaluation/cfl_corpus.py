"""The strings of a formal language that a corpus holds, with their probabilities, and what is known of the language."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairseq_stack.errors import UserError
from fairseq_stack.files import read_columns, reading_as
from fairseq_stack_preprocess.cfl import language_corpus as cfl
from fairseq_stack_preprocess.cfl.bounded_dyck import is_bounded_dyck
from fairseq_stack_preprocess.cfl.distributions import GrammarDistribution
from fairseq_stack_preprocess.cfl.languages import Language, Parameters, Word
from fairseq_stack_preprocess.cfl.recognisers import recogniser_of
from fairseq_stack_preprocess.layout import MANIFEST_NAME, SUFFIX, TEXT
from fairseq_stack_preprocess.text.notation import read_grammar

from .manifest import corpus_at, read_manifest
from .results import sha_of

Contain = Callable[[Sequence[Word]], list[bool]]
"""Says of each of some strings, which may be empty, whether it is in a language."""


@dataclass(frozen=True)
class CFLStrings:
    """The strings of one split.

    Attributes:
        split: its name.
        strings: the strings.
        bounds: for each string -log p(string) in nats, which has the cost of the length.
        bounds_given_length: for each string -log p(string | its length) in nats.
        sha: the beginning of the sha256 of the strings and their bounds.
    """

    split: str
    strings: Sequence[Word]
    bounds: Sequence[float]
    bounds_given_length: Sequence[float]
    sha: str


@dataclass(frozen=True)
class CFLCorpus:
    """A corpus of ``fairseq-stack prepare cfl``.

    Attributes:
        folder: the folder of the corpus.
        dictionaries: the folder of the dictionary; None if the corpus was not binarised.
        language: the name of the task and its parameters where they are not the defaults, or the file of the grammar.
        contain: says which strings are in the language.
        train_lengths: the minimum and maximum length of strings in train.
        greatest_length: the maximum length of strings in any split.
    """

    folder: Path
    dictionaries: Path | None
    language: str
    contain: Contain
    train_lengths: tuple[int, int]
    greatest_length: int

    def read(self, split: str) -> CFLStrings:
        """The strings of a split.

        Raises:
            UserError: the corpus has no such split.
        """
        path = self.folder / TEXT / f"{split}.{SUFFIX}"
        if not path.is_file():
            known = sorted(path.stem for path in (self.folder / TEXT).glob("*.logp"))
            raise UserError(f"{self.folder} has no split {split!r}; it has {', '.join(known) or 'none'}")
        paths = [path, *map(path.with_suffix, (".nll", ".logp"))]
        lines, *columns = read_columns(*paths)
        strings = [tuple(line.split()) for line in lines]
        if not (strings and all(strings)):
            raise UserError(f"{path}: expected a string in each line, got {'an empty one' if strings else 'none'}")
        costs, log_probabilities = map(_numbers, paths[1:], columns)
        given_length = [-value for value in log_probabilities]
        sha = sha_of(([" ".join(string) for string in strings], costs, log_probabilities))
        return CFLStrings(split, strings, costs, given_length, sha)


def _numbers(path: Path, lines: Sequence[str]) -> list[float]:
    numbers = []
    for line, text in enumerate(lines, start=1):
        try:
            numbers.append(float(text))
        except ValueError:
            numbers.append(math.nan)
        if not math.isfinite(numbers[-1]):
            raise UserError(f"{path}, line {line}: expected a finite number, got {text!r}")
    return numbers


def read_cfl_corpus(folder: Path) -> CFLCorpus:
    """Read what a corpus is, from its manifest.

    Args:
        folder: the folder of the corpus, or its ``data-bin``.

    Raises:
        UserError: the folder holds no corpus of a formal language.
    """
    root, dictionaries = corpus_at(folder)
    with reading_as("a manifest of fairseq-stack prepare cfl", root / MANIFEST_NAME):
        manifest = read_manifest(root)
        if is_bounded_dyck(manifest):
            raise UserError(
                f"{folder} has no probabilities of strings: score models on it with fairseq-stack evaluate-pushdown"
            )
        if manifest.get("corpus") != cfl.CORPUS or "options" not in manifest:
            raise UserError(
                f"{folder} is not a corpus of fairseq-stack prepare cfl: expected {MANIFEST_NAME} of such a corpus"
            )
        entries = manifest["options"]
        if entries.get("unary_start"):
            raise UserError(f"{folder} was made with --unary-start: make it again with --grammar {cfl.GRAMMAR_NAME}")
        grammar = root / cfl.GRAMMAR_NAME if entries.get("grammar") else None
        known = {field.name for field in dataclasses.fields(cfl.Options)}  # options that are new have their defaults
        given = {**entries, "grammar": grammar}
        options = cfl.Options(**{name: entry for name, entry in given.items() if name in known})
    if grammar is None:
        language, contain = _named(options.language(), options.parameters)
    else:
        language, contain = str(entries["grammar"]), _in_grammar(grammar)
    return CFLCorpus(
        root,
        dictionaries,
        language,
        contain,
        (options.min_length, options.max_length),
        max(options.max_length, options.test_max_length),
    )


def _named(language: Language, parameters: Parameters) -> tuple[str, Contain]:
    contains = recogniser_of(language, parameters)
    others = [
        f"{name.replace('_', ' ')} {value:g}"
        for name, value in language.parameters(parameters).items()
        if value != language.defaults[name]
    ]
    return ", ".join([language.name, *others]), lambda strings: list(map(contains, strings))


def _in_grammar(path: Path) -> Contain:
    """The strings of a user's grammar have a positive probability."""
    grammar = read_grammar(path)

    def contain(strings: Sequence[Word]) -> list[bool]:
        greatest = max(map(len, strings), default=0)
        distribution = GrammarDistribution(grammar, greatest)
        lengths = set(distribution.lengths(1, greatest))
        numbers = [number for number, string in enumerate(strings) if len(string) in lengths]
        values = distribution.log_probabilities([strings[number] for number in numbers])
        inside = {numbers[i] for i, value in values if value > -math.inf}
        return [number in inside for number in range(len(strings))]

    return contain
