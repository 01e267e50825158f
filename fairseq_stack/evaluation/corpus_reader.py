"""Reading a corpus back: what fairseq-preprocess wrote, or text, and the manifest next to it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairseq_stack.errors import UserError
from fairseq_stack.files import read_lines
from fairseq_stack_preprocess.layout import DATA_BIN, GENERALISATION, MANIFEST_NAME, PIECES, SUFFIX, TEXT, WORD_MARK

INDEX_NAME = re.compile(r"(?P<split>\w+?)(?:\.(?P<pair>[\w-]+-[\w-]+)\.(?P<language>[\w-]+))?\.idx")
SPLIT_ORDER = {"train": 0, "valid": 1, "test": 2, GENERALISATION: 3}


@dataclass(frozen=True)
class Column:
    """One side of a corpus: the sentences of one language in one split.

    Attributes:
        name: the language, or ``text``.
        lengths: tokens in each sentence, the end of sentence not counted.
        sentence: returns a sentence by its number, as text: pieces are joined to words.
    """

    name: str
    lengths: Sequence[int]
    sentence: Callable[[int], str]


@dataclass(frozen=True)
class Split:
    """A part of a corpus: its columns, and further files with a line for each sentence, by name."""

    name: str
    columns: list[Column]
    side_files: dict[str, Path] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.columns[0].lengths)


@dataclass(frozen=True)
class Corpus:
    """A corpus: its folder, its splits, and its manifest, if it has one.

    Attributes:
        folder: the folder that was read.
        splits: train, valid, test, gen and any further splits, in this order.
        manifest: the content of ``manifest.json``, or None.
        dictionaries: for each language the number of symbols of fairseq's dictionary, if there is one.
    """

    folder: Path
    splits: list[Split]
    manifest: dict[str, Any] | None
    dictionaries: dict[str, int]

    def split(self, name: str) -> Split:
        """The split of that name.

        Raises:
            UserError: the corpus has no such split.
        """
        for split in self.splits:
            if split.name == name:
                return split
        names = ", ".join(split.name for split in self.splits)
        raise UserError(f"{self.folder} has no split {name}; it has {names}")

    def lengths(self) -> dict[str, dict[str, Sequence[int]]]:
        """The lengths of sentences by column and split, without empty splits."""
        by_column: dict[str, dict[str, Sequence[int]]] = {}
        for split in self.splits:
            for column in split.columns:
                if column.lengths:
                    by_column.setdefault(column.name, {})[split.name] = column.lengths
        return by_column


def read_corpus(folder: Path) -> Corpus:
    """Read a folder of ``fairseq-stack prepare``, or one that fairseq-preprocess wrote.

    Raises:
        UserError: the folder holds no corpus, or a file of it is missing or broken.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder")
    data_bin, root = (folder / DATA_BIN, folder) if (folder / DATA_BIN).is_dir() else (folder, folder)
    if folder.name == DATA_BIN and (folder.parent / MANIFEST_NAME).is_file():
        root = folder.parent
    dictionaries: dict[str, int] = {}
    if any(data_bin.glob("*.idx")):
        splits = _read_binary(data_bin, dictionaries)
    else:
        folders = (root / name for name in (PIECES, TEXT, "") if (root / name).is_dir())
        splits = _read_text(next(folders))
    if not splits:
        raise UserError(f"{folder} holds no corpus: expected {DATA_BIN}, {TEXT}, or files of fairseq-preprocess")
    return Corpus(folder, _with_side_files(splits, root / TEXT), read_manifest(root), dictionaries)


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest in a folder, or None if there is none.

    Raises:
        UserError: it is not a JSON object, or a part that is shown is not.
    """
    path = folder / MANIFEST_NAME
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not a manifest: {error}") from error
    if not isinstance(content, dict):
        raise UserError(f"{path} is not a manifest: expected an object, got {type(content).__name__}")
    if not isinstance(content.get("corpus", ""), str):
        raise UserError(f"{path} is not a manifest: expected corpus to be a name, got {content['corpus']}")
    parts = {key: content.get(key, {}) for key in ("options", "versions", "vocabulary", "inputs", "splits", "dropped")}
    for key in ("splits", "dropped"):
        if isinstance(parts[key], dict):
            parts |= {f"{key} of {split}": counts for split, counts in parts[key].items()}
    for name, part in parts.items():
        if not isinstance(part, dict):
            raise UserError(f"{path} is not a manifest: expected {name} to be an object, got {type(part).__name__}")
    return content


def _read_binary(folder: Path, dictionaries: dict[str, int]) -> list[Split]:
    """What fairseq-preprocess wrote; the sizes of its dictionaries are noted in ``dictionaries``."""
    loaded: dict[str, Any] = {}
    columns: dict[str, list[Column]] = {}
    for path in sorted(folder.glob("*.idx"), key=_source_first):
        match = INDEX_NAME.fullmatch(path.name)
        if match is None:
            continue
        language = match["language"] or TEXT
        if language not in loaded:
            name = f"dict.{language}.txt" if match["language"] else "dict.txt"
            if not (folder / name).is_file():
                raise UserError(f"{folder / name} is missing; {path.name} needs it")
            loaded[language] = _dictionary(folder / name)
            dictionaries[language] = len(loaded[language])
        columns.setdefault(match["split"], []).append(_binary_column(path, language, loaded[language]))
    return [Split(name, columns[name]) for name in sorted(columns, key=_split_order)]


def _dictionary(path: Path) -> Any:
    from fairseq.data import Dictionary

    try:
        return Dictionary.load(str(path))
    except (ValueError, RuntimeError) as error:  # a wrong line, a symbol twice
        raise UserError(f"{path} is not a fairseq dictionary: {error}") from error


def _source_first(path: Path) -> tuple[str, bool]:
    """Sorts train.de-en.de before train.de-en.en, and train.en-de.en before train.en-de.de."""
    match = INDEX_NAME.fullmatch(path.name)
    if match is None or match["pair"] is None:
        return path.name, False
    return match["split"], not match["pair"].startswith(f"{match['language']}-")


def _split_order(name: str) -> tuple[int, str]:
    return SPLIT_ORDER.get(name, len(SPLIT_ORDER)), name


def _binary_column(path: Path, language: str, dictionary: Any) -> Column:
    from fairseq.data import data_utils

    try:
        dataset = data_utils.load_indexed_dataset(str(path.with_suffix("")), dictionary)
    except (OSError, ValueError, AssertionError) as error:
        raise UserError(f"{path} cannot be read: {error}") from error
    if dataset is None:
        raise UserError(f"{path} is not a fairseq index, or {path.with_suffix('.bin').name} is missing")
    has_pieces = any(symbol.startswith(WORD_MARK) for symbol in dictionary.symbols)

    def sentence(index: int) -> str:
        try:
            tokens = dataset[index].tolist()
        except ValueError as error:
            raise UserError(f"{path.with_suffix('.bin')}: sentence {index} cannot be read: {error}") from error
        symbols = [dictionary[token] for token in tokens]
        if symbols and symbols[-1] == dictionary[dictionary.eos()]:
            symbols.pop()
        return join_tokens(symbols, has_pieces)

    return Column(language, [int(size) - 1 for size in dataset.sizes], sentence)


def join_tokens(tokens: Iterable[str], has_pieces: bool) -> str:
    """The text of tokens, which are words or pieces of SentencePiece."""
    if has_pieces:
        return "".join(tokens).replace(WORD_MARK, " ").strip()
    return " ".join(tokens)


def _read_text(folder: Path) -> list[Split]:
    """Text files ``SPLIT.NAME``, one column each; if ``SPLIT.txt`` exists, it is the only column."""
    columns: dict[str, list[Column]] = {}
    for path in sorted(folder.glob("*.*")):
        split, _, name = path.name.partition(".")
        if split in SPLIT_ORDER and path.is_file():
            columns.setdefault(split, []).append(_text_column(path, name))
    return [Split(name, _main_columns(columns[name])) for name in sorted(columns, key=_split_order)]


def _text_column(path: Path, name: str) -> Column:
    lines = read_lines(path)

    def sentence(index: int) -> str:
        line = lines[index]
        return join_tokens(line.split(" "), WORD_MARK in line)

    return Column(name, [len(line.split()) for line in lines], sentence)


def _main_columns(columns: list[Column]) -> list[Column]:
    """The column called text if there is one, otherwise all columns with as many lines as the longest."""
    most = max(len(column.lengths) for column in columns)
    text = [column for column in columns if column.name == SUFFIX]
    return text or [column for column in columns if len(column.lengths) == most]


def _with_side_files(splits: list[Split], text: Path) -> list[Split]:
    """The splits with the text files that have a line for each sentence and are not columns themselves."""
    completed = []
    for split in splits:
        files = {}
        for path in sorted(text.glob(f"{split.name}.*")):
            name = path.name.removeprefix(f"{split.name}.")
            columns = {column.name for column in split.columns}
            # The column of a corpus for language modelling has no language; it is called after its folder.
            is_column = name in columns or (name == SUFFIX and TEXT in columns)
            if not is_column and path.is_file() and len(read_lines(path)) == len(split):
                files[name] = path
        completed.append(Split(split.name, split.columns, files))
    return completed
