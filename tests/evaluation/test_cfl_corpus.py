"""Strings of a formal language read back, with what is known of the language; and corpora that cannot be used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.cfl_corpus import read_cfl_corpus
from fairseq_stack_preprocess.cfl import language_corpus as cfl

GRAMMAR = "S -> 'a' S 'bb' [0.5] | 'a' 'bb' [0.5] | ''"


def make(folder: Path, **options: Any) -> Path:
    sizes = {"train_size": 20, "valid_size": 5, "test_per_length": 3, "batch_size": 5, "binarise": False}
    lengths = {"min_length": 3, "max_length": 7, "test_min_length": 3, "test_max_length": 9}
    cfl.prepare(cfl.Options(**{**sizes, **lengths, **options}), folder)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make(tmp_path / "corpus", task="marked-reversal")


def test_a_language(folder: Path) -> None:
    corpus = read_cfl_corpus(folder)
    assert (corpus.language, corpus.train_lengths, corpus.greatest_length) == ("marked-reversal", (3, 7), 9)
    assert corpus.dictionaries is None
    test = corpus.read("test")
    assert [" ".join(string) for string in test.strings] == (folder / "text/test.txt").read_text().splitlines()
    assert list(test.bounds) == [float(line) for line in (folder / "text/test.nll").read_text().splitlines()]
    assert list(test.bounds_given_length) == [-float(line) for line in (folder / "text/test.logp").open()]
    assert all(corpus.contain(test.strings))
    assert corpus.contain([tuple("0#0"), tuple("0#1")]) == [True, False]
    assert corpus.read("valid").sha != test.sha == read_cfl_corpus(folder).read("test").sha


def test_the_data_and_the_printed_grammar(tmp_path: Path) -> None:
    """In the printed grammar, a pair of brackets may be around everything."""
    strings = [tuple("(())"), tuple("()()"), tuple("[]()")]
    data = make(tmp_path / "data", task="dyck", parameters={"bracket_types": 1})
    assert read_cfl_corpus(data).contain(strings) == [False, True, False]
    printed = make(tmp_path / "printed", grammar=data / "grammar.txt", min_length=4, max_length=4)
    assert read_cfl_corpus(printed).contain(strings) == [True, True, False]


def test_a_grammar_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text(GRAMMAR)
    corpus = read_cfl_corpus(make(tmp_path / "corpus", grammar=tmp_path / "mine.txt", min_length=2))
    assert corpus.language == "mine.txt"
    strings = [(), ("a", "bb"), ("a",), ("a", "a", "bb", "bb"), ("a", "<unk>"), ("a",) * 8, ("a",) * 5 + ("bb",) * 5]
    assert corpus.contain(strings) == [False, True, False, True, False, False, True]
    assert corpus.contain([]) == []
    assert corpus.contain([()]) == [False]


def test_it_is_read_from_its_data_bin(tmp_path: Path) -> None:
    make(tmp_path / "corpus", task="unmarked-reversal", binarise=True)
    for folder in (tmp_path / "corpus", tmp_path / "corpus" / "data-bin"):
        corpus = read_cfl_corpus(folder)
        assert (corpus.train_lengths, corpus.greatest_length) == ((3, 7), 9)
        assert corpus.dictionaries == tmp_path / "corpus" / "data-bin"
        assert all(corpus.contain(corpus.read("test").strings))


def test_an_option_that_an_older_version_did_not_have(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["options"]["batch_size"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert read_cfl_corpus(folder).language == "marked-reversal"
    manifest["options"]["unary_start"] = True
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(UserError, match="was made with --unary-start: make it again"):
        read_cfl_corpus(folder)


@pytest.mark.parametrize("options", [5, {}, {"task": "dyck", "min_length": "7"}])
def test_damaged_options(folder: Path, options: Any) -> None:
    (folder / "manifest.json").write_text(json.dumps({"corpus": "cfl", "options": options}))
    with pytest.raises(UserError, match=r"manifest\.json is not a manifest of fairseq-stack prepare cfl: "):
        read_cfl_corpus(folder)


@pytest.mark.parametrize(("suffix", "number"), [("nll", "nan"), ("logp", "-inf"), ("logp", "x")])
def test_damaged_numbers(folder: Path, suffix: str, number: str) -> None:
    path = folder / "text" / f"test.{suffix}"
    first, _, *others = path.read_text().splitlines()
    path.write_text("".join(f"{line}\n" for line in (first, number, *others)))
    with pytest.raises(UserError, match=rf"test\.{suffix}, line 2: expected a finite number, got '{number}'"):
        read_cfl_corpus(folder).read("test")


def test_no_strings(folder: Path) -> None:
    for suffix in ("txt", "nll", "logp"):
        (folder / "text" / f"test.{suffix}").write_text("")
    with pytest.raises(UserError, match=r"test\.txt: expected a string in each line, got none"):
        read_cfl_corpus(folder).read("test")


def test_folders_that_hold_no_such_corpus(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nowhere is not a folder"):
        read_cfl_corpus(tmp_path / "nowhere")
    with pytest.raises(UserError, match=r"is not a corpus of fairseq-stack prepare cfl: expected manifest\.json"):
        read_cfl_corpus(tmp_path)
    for manifest, message in (
        ('{"corpus": "mt"}', "is not a corpus of fairseq-stack prepare cfl"),
        ('{"corpus": "cfl", "options": {"task": "bounded-dyck"}}', "has no probabilities of strings: score .*pushdown"),
    ):
        (folder / "manifest.json").write_text(manifest)
        with pytest.raises(UserError, match=message):
            read_cfl_corpus(folder)


def test_a_split_that_is_missing(folder: Path) -> None:
    with pytest.raises(UserError, match="has no split 'dev'; it has test, train, valid"):
        read_cfl_corpus(folder).read("dev")
