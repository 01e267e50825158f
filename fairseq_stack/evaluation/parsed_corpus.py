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
    pieces, tags = others
    word_of = _word_of(pieces, columns[pieces], sentences) if pieces in columns else [range(len(x)) for x in sentences]
    return ParsedCorpus(
        sentences=sentences,
        attachments=text / f"{split}.attach",
        word_of=word_of,
        punctuation=_punctuation(tags, columns[tags], word_of) if tags in columns else None,
        has_brackets=is_bounded_dyck(read_manifest(root)),
        dictionaries=dictionaries,
    )


def _word_of(path: Path, sizes: Sequence[str], sentences: Sequence[Line]) -> list[Sequence[int]]:
    """The number of the word that each token belongs to, by the numbers of pieces of words."""
    word_of: list[Sequence[int]] = []
    for number, (line, sentence) in enumerate(zip(sizes, sentences, strict=True), start=1):
        counts = [int(count) if count.isdecimal() else 0 for count in line.split()]
        if 0 in counts or sum(counts) != len(sentence):
            expected = f"the numbers of pieces of words, {len(sentence)} together"
            raise UserError(f"{path}, line {number}: expected {expected}, got {line[:80]!r}")
        word_of.append([word for word, count in enumerate(counts) for _ in range(count)])
    return word_of


def _punctuation(path: Path, tags: Sequence[str], word_of: Sequence[Sequence[int]]) -> list[list[bool]]:
    """Whether tokens are punctuation, by the tags of their words."""
    punctuation = []
    for number, (line, words) in enumerate(zip(map(str.split, tags), word_of, strict=True), start=1):
        if len(line) != len(set(words)):
            raise UserError(f"{path}, line {number}: expected {len(set(words))} tags, got {len(line)}")
        punctuation.append([line[word] in PUNCTUATION_TAGS for word in words])
    return punctuation
