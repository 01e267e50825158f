"""Tokenizers give the ids of fairseq's dictionary."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from fairseq.data import Dictionary
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("transformers")

from transformers import AutoTokenizer

from fairseq_stack.companions import MANIFEST
from fairseq_stack.errors import UserError
from fairseq_stack.hub.text import piece_tokenizer
from fairseq_stack.huggingface.tokenizers import (
    DICTIONARY,
    SPECIAL_SYMBOLS,
    PieceTokenizer,
    require_plain,
    word_tokenizer,
)
from fairseq_stack_preprocess.mt.translation_corpus import prepare
from tests.huggingface.conftest import PAIRS
from tests.models.building import dictionary_of
from tests.preprocess.mt.pairs import options_for, write_pairs

WORDS = ["(", ")", "a", "Ä", "word", "</s", "\u0301", "日本", "x" * 300]
SPACES = [" ", "\t", "\x1c", "\x1f", "\x85", "\xa0", "\u2003", "\u2028", "\u3000", "\r\n", "  "]
END = 2


def indices(dictionary: Dictionary, text: str) -> list[int]:
    """As the hub's, without the end."""
    encoded: list[int] = dictionary.encode_line(text, append_eos=False, add_if_not_exist=False).tolist()
    return encoded


@given(
    st.lists(
        st.tuples(st.sampled_from([*WORDS, "unknown", "<unk>", "\u200b", "�"]), st.sampled_from(SPACES)), max_size=8
    ),
    st.sampled_from(["", *SPACES]),
)
def test_words(pieces: list[tuple[str, str]], beginning: str) -> None:
    text = beginning + "".join(word + space for word, space in pieces)
    dictionary = dictionary_of(*WORDS)
    expected = indices(dictionary, text)
    assert word_tokenizer(dictionary.symbols, begins=True)(text).input_ids == [END, *expected]
    assert word_tokenizer(dictionary.symbols, begins=False)(text).input_ids == [*expected, END]
    assert word_tokenizer(dictionary.symbols, begins=True)(text, text).input_ids == [END, *expected, *expected]
    assert word_tokenizer(dictionary.symbols, begins=False)(text, text).input_ids == [*expected, *expected, END]


TEXTS = [
    *(source for source, _ in PAIRS),
    "",
    "  \t ",
    "▁ wörtlich ▁▁x▁",
    "Unbekannt: 日本語 und Ω𝔄 .",
    "\uff21\uff22\uff23\u3000ﬀ a\u0308 \u200b",
    "Der\tSatz  ist\x85doppelt ",
    "<pad a</s",
]
CORPORA: dict[str, dict[str, Any]] = {
    "default": {},
    "threshold": {"piece_threshold": 5, "normalization": "none"},
    "moses": {"moses": True},
    "normalised-by-sentencepiece": {"piece_normalization": "nmt_nfkc", "normalization": "nfc"},
}


@pytest.fixture(scope="module", params=CORPORA)
def corpus(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    options = options_for(write_pairs(folder / "c", PAIRS), pieces=90, **CORPORA[request.param])
    prepare(options, folder / "corpus")
    return folder / "corpus"


@pytest.mark.parametrize("known", ["all", "half"])
def test_pieces(corpus: Path, tmp_path: Path, known: str) -> None:
    """Also of a dictionary that lacks pieces, which the text is cut into all the same."""
    model, manifest = corpus / "sentencepiece.de.model", corpus / "manifest.json"
    cut = piece_tokenizer(model, manifest, "de")
    pieces = sorted({piece for text in TEXTS[: len(PAIRS)] for piece in cut(text).split()})
    dictionary = dictionary_of(*(pieces if known == "all" else pieces[::2]))
    dictionary.save(str(tmp_path / DICTIONARY))
    tokenizer = PieceTokenizer(str(tmp_path / DICTIONARY), str(model), str(manifest), language="de")
    expected = [[*indices(dictionary, cut(text)), END] for text in TEXTS]
    assert tokenizer(TEXTS).input_ids == expected
    assert any(3 in ids for ids in expected[: len(PAIRS)]) == (known == "half")

    tokenizer.save_pretrained(tmp_path / "saved")
    assert {path.name for path in (tmp_path / "saved").iterdir()} >= {DICTIONARY, "sentencepiece.model", MANIFEST}
    loaded = AutoTokenizer.from_pretrained(tmp_path / "saved", trust_remote_code=True)
    assert isinstance(loaded, PieceTokenizer)
    assert loaded(TEXTS).input_ids == expected
    assert str(tmp_path) not in (tmp_path / "saved" / "tokenizer_config.json").read_text()
    if known == "all":
        text = "Der Satz ist für x ."
        assert loaded.decode(loaded(text).input_ids, skip_special_tokens=True) == text


def test_pieces_of_another_model(tmp_path: Path) -> None:
    """A model of a kind that ``fairseq-stack prepare`` does not train, for a language model."""
    sentencepiece = pytest.importorskip("sentencepiece")
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS), model_writer=model, model_type="unigram", vocab_size=66, minloglevel=2
    )
    (tmp_path / "spm.model").write_bytes(model.getvalue())
    cut = piece_tokenizer(tmp_path / "spm.model", None, None)
    dictionary = dictionary_of(*sorted({piece for text in TEXTS for piece in cut(text).split()}))
    dictionary.save(str(tmp_path / DICTIONARY))
    tokenizer = PieceTokenizer(str(tmp_path / DICTIONARY), str(tmp_path / "spm.model"), begins=True)
    assert tokenizer(TEXTS).input_ids == [[END, *indices(dictionary, cut(text))] for text in TEXTS]


def test_words_are_saved(tmp_path: Path) -> None:
    word_tokenizer(dictionary_of(*WORDS).symbols, begins=True, padding_side="left").save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert loaded(["( a )", "("], padding=True).input_ids == [[2, 4, 6, 5], [1, 1, 2, 4]]
    assert loaded.decode([2, 4, 6, 5, 2], skip_special_tokens=True) == "( a )"
    assert (loaded.bos_token_id, loaded.eos_token_id, loaded.pad_token_id, loaded.unk_token_id) == (2, 2, 1, 3)


def test_special_symbols_in_text() -> None:
    """fairseq refuses ``<pad>`` and ``<s>`` in a text; its ``</s>`` ends a text, as tools for transformers expect."""
    tokenizer = word_tokenizer(dictionary_of(*WORDS).symbols, begins=True)
    assert tokenizer("( )</s>").input_ids == tokenizer("( ) </s>").input_ids == [2, 4, 5, 2]


@pytest.mark.parametrize(
    ("symbols", "message"),
    [
        (["<pad>", "</s>", "<unk>", "a"], "words: expected a dictionary that begins with <s> <pad> </s> <unk>, got"),
        ([*SPECIAL_SYMBOLS, "a", "b", "a"], "words has the symbol 'a' twice"),
    ],
)
def test_dictionaries_without_a_counterpart(symbols: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        require_plain(symbols, "words")


def test_damaged_files(tmp_path: Path) -> None:
    (tmp_path / DICTIONARY).write_text("a 1\n")
    (tmp_path / "x.model").write_text("x")
    with pytest.raises(UserError, match=r"x\.model is not a SentencePiece model"):
        PieceTokenizer(str(tmp_path / DICTIONARY), str(tmp_path / "x.model"))
