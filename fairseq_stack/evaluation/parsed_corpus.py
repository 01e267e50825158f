"""Sentences with their parses, as ``prepare treebank`` and ``prepare cfl --task bounded-dyck`` write them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from fairseq_stack.errors import UserError
from fairseq_stack.files import read_lines
from fairseq_stack_preprocess.cfl.bounded_dyck import attachments, is_bounded_dyck
from fairseq_stack_preprocess.text.binarise import DATA_BIN, SUFFIX, TEXT

from .corpus import read_manifest
from .unlabelled_f1 import PUNCTUATION_TAGS

Line = tuple[str, ...]


@dataclass(frozen=True)
class ParsedCorpus:
    """One split of a corpus.

    Attributes:
        sentences: the tokens of each sentence.
        attachments: the file with what they attach to, a line for each sentence.
        punctuation: whether each token is punctuation, for each sentence; None if the corpus has no tags.
        has_brackets: whether sentences are strings of brackets.
        dictionaries: the folder of the dictionary; None if the corpus was not binarised.
    """

    sentences: Sequence[Line]
    attachments: Path
    punctuation: Sequence[Sequence[bool]] | None
    has_brackets: bool
    dictionaries: Path | None


def read_parsed_corpus(folder: Path, split: str) -> ParsedCorpus:
    """Read a split of a corpus. Its attachments are not read yet.

    Args:
        folder: the folder of the corpus, or its ``data-bin``.
        split: the name of the split, such as ``test``.

    Raises:
        UserError: the folder holds no such corpus or split, or a file does not fit the others.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder")
    root = folder.parent if folder.name == DATA_BIN else folder
    text = root / TEXT
    path = text / f"{split}.{SUFFIX}"
    if not path.is_file():
        known = sorted(found.stem for found in text.glob("*.attach"))
        raise UserError(f"{folder} has no sentences {path.name}; it has parses of {', '.join(known) or 'none'}")
    sentences = [tuple(line.split()) for line in read_lines(path)]
    if not any(sentences):
        raise UserError(f"{path} is empty: expected a sentence in each line")
    has_brackets = is_bounded_dyck(read_manifest(root))
    if has_brackets:
        _check_brackets(path, sentences)
    return ParsedCorpus(
        sentences=sentences,
        attachments=text / f"{split}.attach",
        punctuation=_punctuation(text, split, sentences),
        has_brackets=has_brackets,
        dictionaries=root / DATA_BIN if (root / DATA_BIN).is_dir() else None,
    )


def _check_brackets(path: Path, strings: Sequence[Line]) -> None:
    for number, string in enumerate(strings, start=1):
        try:
            attachments(string)
        except ValueError as error:
            raise UserError(f"{path}, line {number}: {error}") from error


def _punctuation(text: Path, split: str, sentences: Sequence[Line]) -> list[list[bool]] | None:
    """Whether tokens are punctuation, by the tags of their words."""
    path = text / f"{split}.tags"
    if not path.is_file():
        return None
    tags = [line.split() for line in read_lines(path)]
    pieces = _pieces_per_word(text / f"{split}.pieces-per-word", tags)
    found = [
        [tag in PUNCTUATION_TAGS for tag, count in zip(*line, strict=True) for _ in range(int(count))]
        for line in zip(tags, pieces, strict=True)
    ]
    if list(map(len, found)) != list(map(len, sentences)):
        raise UserError(f"{path} does not have a tag for each word of {split}.{SUFFIX}; prepare the corpus again")
    return found


def _pieces_per_word(path: Path, tags: Sequence[Sequence[str]]) -> list[list[str]]:
    """How many tokens each word is, where tokens are pieces of words; otherwise 1."""
    if not path.is_file():
        return [["1"] * len(line) for line in tags]
    pieces = [line.split() for line in read_lines(path)]
    if list(map(len, pieces)) != list(map(len, tags)) or not all(map(str.isdecimal, chain.from_iterable(pieces))):
        raise UserError(f"{path} does not have a number for each tag; prepare the corpus again")
    return pieces
