"""Sentences with their parses, as ``prepare treebank`` and ``prepare cfl --task bounded-dyck`` write them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairseq_stack.errors import UserError
from fairseq_stack.files import read_columns
from fairseq_stack_preprocess.cfl.bounded_dyck import is_bounded_dyck
from fairseq_stack_preprocess.layout import SUFFIX, TEXT

from .manifest import corpus_at, read_manifest
from .unlabelled_f1 import PUNCTUATION_TAGS

Line = tuple[str, ...]


@dataclass(frozen=True)
class ParsedCorpus:
    """One split of a corpus.

    Attributes:
        sentences: the tokens of each sentence.
        attachments: the file with what they attach to, a line for each sentence.
        word_of: the number of the word that each token belongs to, from 0, for each sentence.
        punctuation: whether each token is punctuation, for each sentence; None if the corpus has no tags.
        has_brackets: whether sentences are strings of brackets.
        dictionaries: the folder of the dictionary; None if the corpus was not binarised.
    """

    sentences: Sequence[Line]
    attachments: Path
    word_of: Sequence[Sequence[int]]
    punctuation: Sequence[Sequence[bool]] | None
    has_brackets: bool
    dictionaries: Path | None


def read_parsed_corpus(folder: Path, split: str) -> ParsedCorpus:
    """Read a split of a corpus. Its attachments are not read yet.

    Args:
        folder: the folder of the corpus, or its ``data-bin``.
        split: the name of the split, such as ``test``.

    Raises:
        UserError: the folder holds no such corpus or split.
    """
    root, dictionaries = corpus_at(folder)
    text = root / TEXT
    path = text / f"{split}.{SUFFIX}"
    if not path.is_file():
        known = sorted(file.stem for file in text.glob("*.attach"))
        raise UserError(f"{folder} has no sentences {path.name}; it has parses of {', '.join(known) or 'none'}")
    others = [text / f"{split}.{name}" for name in ("pieces-per-word", "tags")]
    files = [path, *filter(Path.is_file, others)]
    columns = dict(zip(files, read_columns(*files), strict=True))
    if not columns[path]:
        raise UserError(f"{path} has no sentences")
    sentences = [tuple(line.split()) for line in columns[path]]
    word_of = _word_of(columns.get(others[0]), sentences)
    return ParsedCorpus(
        sentences=sentences,
        attachments=text / f"{split}.attach",
        word_of=word_of,
        punctuation=_punctuation(columns.get(others[1]), word_of),
        has_brackets=is_bounded_dyck(read_manifest(root)),
        dictionaries=dictionaries,
    )


def _word_of(sizes: Sequence[str] | None, sentences: Sequence[Line]) -> list[Sequence[int]]:
    """The number of the word that each token belongs to, where tokens are pieces of words; otherwise its own number."""
    if sizes is None:
        return [range(len(sentence)) for sentence in sentences]
    counts = [map(int, line.split()) for line in sizes]
    return [[number for number, count in enumerate(line) for _ in range(count)] for line in counts]


def _punctuation(tags: Sequence[str] | None, word_of: Sequence[Sequence[int]]) -> list[list[bool]] | None:
    """Whether tokens are punctuation, by the tags of their words."""
    if tags is None:
        return None
    lines = [line.split() for line in tags]
    return [[line[word] in PUNCTUATION_TAGS for word in words] for line, words in zip(lines, word_of, strict=True)]
