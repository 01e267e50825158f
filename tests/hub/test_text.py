"""A user's sentence is split into pieces like the text of the corpus."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairseq_stack.companions import MANIFEST, companions_of_data
from fairseq_stack.errors import UserError
from fairseq_stack.hub.text import joined, tokenizer_of
from fairseq_stack_preprocess.mt.translation_corpus import prepare
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
        tokenize = tokenizer_of(companions, language)
        assert tokenize is not None
        pieces = lines_of(tmp_path / "corpus" / "pieces" / f"train.{language}")
        assert [tokenize(pair[side]) for pair in PAIRS] == pieces
        text = lines_of(tmp_path / "corpus" / "text" / f"train.{language}")
        assert list(map(joined, pieces)) == [" ".join(line.split()) for line in text]


def test_no_model_no_pieces(tmp_path: Path) -> None:
    assert tokenizer_of({}, "de") is tokenizer_of({"sentencepiece.en.model": tmp_path}, "de") is None


def test_damaged_files(tmp_path: Path) -> None:
    prefix = write_pairs(tmp_path / "c", PAIRS)
    prepare(options_for(prefix, pieces=60), tmp_path / "corpus")
    companions = companions_of_data(tmp_path / "corpus" / "data-bin")
    for content in ("", "[]", "{}", '{"corpus": "mt"}', '{"corpus": "mt", "options": {}}', "\u00ff"):
        (tmp_path / "manifest.json").write_text(content, encoding="latin-1")
        with pytest.raises(UserError, match=r"manifest\.json is not"):
            tokenizer_of(companions | {MANIFEST: tmp_path / "manifest.json"}, "de")
    (tmp_path / "x.model").write_text("x")
    with pytest.raises(UserError, match=r"x\.model is not a SentencePiece model"):
        tokenizer_of({"sentencepiece.de.model": tmp_path / "x.model"}, "de")
