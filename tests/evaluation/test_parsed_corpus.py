"""Sentences with their parses as evaluate-pushdown reads them: punctuation by tags."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.parsed_corpus import read_parsed_corpus

FILES = {"test.txt": "The dogs bark .\nBark !\n", "test.attach": "1 1 3 2\n1 1\n", "test.tags": "DT NNS VBP .\nVB .\n"}
PIECES = {"test.txt": "_The _dog s _bark .\n_Ba rk !\n", "test.pieces-per-word": "1 2 1 1\n2 1\n"}


def write(folder: Path, files: dict[str, str]) -> Path:
    (folder / "text").mkdir()
    for name, content in files.items():
        (folder / "text" / name).write_text(content, encoding="utf-8")
    return folder


def test_punctuation_of_words(tmp_path: Path) -> None:
    corpus = read_parsed_corpus(write(tmp_path, FILES), "test")
    assert corpus.sentences == [("The", "dogs", "bark", "."), ("Bark", "!")]
    assert corpus.punctuation == [[False, False, False, True], [False, True]]
    assert list(map(list, corpus.word_of)) == [[0, 1, 2, 3], [0, 1]]
    assert not corpus.has_brackets and corpus.dictionaries is None


def test_punctuation_of_pieces(tmp_path: Path) -> None:
    corpus = read_parsed_corpus(write(tmp_path, FILES | PIECES), "test")
    assert corpus.punctuation == [[False, False, False, False, True], [False, False, True]]
    assert corpus.word_of == [[0, 1, 1, 2, 3], [0, 0, 1]]


def test_without_tags(tmp_path: Path) -> None:
    write(tmp_path, {name: FILES[name] for name in ("test.txt", "test.attach")})
    (tmp_path / "data-bin").mkdir()
    corpus = read_parsed_corpus(tmp_path / "data-bin", "test")
    assert corpus.punctuation is None and corpus.dictionaries == tmp_path / "data-bin"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "test.pieces-per-word",
            "1 2 1 1\n2\n",
            "line 2: expected the numbers of pieces of words, 3 together, got '2'",
        ),
        ("test.pieces-per-word", "1 2 1 1\n3 x\n", "line 2: expected the numbers of pieces of words, 3 together"),
        ("test.tags", "DT NNS VBP .\nVB\n", "line 2: expected 2 tags, got 1"),
    ],
)
def test_damaged_files(name: str, content: str, message: str, tmp_path: Path) -> None:
    write(tmp_path, FILES | PIECES | {name: content})
    with pytest.raises(UserError, match=rf"{name}, {message}"):
        read_parsed_corpus(tmp_path, "test")


def test_no_corpus(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no is not a folder"):
        read_parsed_corpus(tmp_path / "no", "test")
    with pytest.raises(UserError, match=r"has no sentences dev\.txt; it has parses of test"):
        read_parsed_corpus(write(tmp_path, FILES), "dev")
    (tmp_path / "text" / "test.tags").write_text("DT NNS VBP .\n")
    with pytest.raises(UserError, match=r"test\.tags has 1 lines; expected 2, as .*test\.txt has"):
        read_parsed_corpus(tmp_path, "test")
