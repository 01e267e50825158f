"""A user's sentence is split into pieces like the text of the corpus."""

from __future__ import annotations

from pathlib import Path

import pytest
from fairseq.data import Dictionary

from fairseq_stack.companions import MANIFEST, companions_of_data
from fairseq_stack.errors import UserError
from fairseq_stack.hub.text import pieces_of
from fairseq_stack_preprocess.mt.translation_corpus import prepare
from tests.gpt2_folders import save_tokenizer
from tests.preprocess.corpus_folders import lines_of
from tests.preprocess.mt.pairs import options_for, write_pairs

PAIRS = [
    (f"Der „Satz“ Nummer\u2009{i} ist eﬃzient .", f"the “sentence” number\u00a0{i} is eﬃcient .") for i in range(30)
]


@pytest.mark.parametrize(("normalization", "moses"), [("nfkc", True), ("nfc", False), ("none", True)])
def test_pieces_are_those_of_the_corpus(tmp_path: Path, normalization: str, moses: bool) -> None:
    prefix = write_pairs(tmp_path / "c", PAIRS)
    options = options_for(prefix, pieces=60, piece_threshold=5, normalization=normalization, moses=moses)
    prepare(options, tmp_path / "corpus")
    companions = companions_of_data(tmp_path / "corpus" / "data-bin")
    for side, language in enumerate(("de", "en")):
        model = pieces_of(companions, language, Dictionary())
        assert model is not None
        pieces = lines_of(tmp_path / "corpus" / "pieces" / f"train.{language}")
        assert [model.cut(pair[side]) for pair in PAIRS] == pieces
        text = lines_of(tmp_path / "corpus" / "text" / f"train.{language}")
        assert list(map(model.join, pieces)) == [" ".join(line.split()) for line in text]


def test_pieces_of_gpt2(tmp_path: Path) -> None:
    """The first word has no mark; blanks between words are one blank each, and every text comes back."""
    save_tokenizer(tmp_path, "the cat sat on the mat, the naïve cat did not")
    model = pieces_of({"tokenizer.json": tmp_path / "tokenizer.json"}, None, Dictionary())
    assert model is not None and not model.marks_first_word
    sentence = "naïve \u2009cats: ĠĠ don't ▁ sit"
    pieces = model.cut(f" {sentence}  ")
    assert model.join(pieces) == " ".join(sentence.split())
    assert sum(piece.startswith(model.word_mark) for piece in pieces.split(" ")) == len(sentence.split()) - 1


@pytest.mark.parametrize("content", ["{", "[]", '{"corpus": "mt", "options": []}'])
def test_damaged_manifests(tmp_path: Path, content: str) -> None:
    prepare(options_for(write_pairs(tmp_path / "c", PAIRS), pieces=60, piece_threshold=5), tmp_path / "corpus")
    companions = companions_of_data(tmp_path / "corpus" / "data-bin")
    companions[MANIFEST].write_text(content)
    with pytest.raises(UserError, match=r"manifest\.json is not a manifest of fairseq-stack prepare: "):
        pieces_of(companions, "de", Dictionary())


def test_damaged_tokenizers(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(UserError, match=r"tokenizer\.json is not a tokenizer of bytes: "):
        pieces_of({"tokenizer.json": tmp_path / "tokenizer.json"}, None, Dictionary())


def test_no_model_no_pieces(tmp_path: Path) -> None:
    assert pieces_of({}, "de", Dictionary()) is None
    assert pieces_of({"sentencepiece.en.model": tmp_path}, "de", Dictionary()) is None
