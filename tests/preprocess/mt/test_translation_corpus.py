"""The corpus mt: what is written, options, and mistakes."""

from __future__ import annotations

import sys
import unicodedata
from pathlib import Path
from typing import Any, Literal

import hypothesis
import pytest
from hypothesis import strategies

from fairseq_stack_preprocess.errors import PrepareError
from fairseq_stack_preprocess.mt import translation_corpus as corpus
from fairseq_stack_preprocess.mt.split_text import normalizer
from fairseq_stack_preprocess.mt.translation_corpus import Options, prepare
from tests.preprocess.corpus_folders import lines_of, manifest_of

from .pairs import SPLITS, options_for, write_pairs


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """A corpus of 40 pairs, all different."""
    return write_pairs(tmp_path / "corpus", [(f"Satz Nummer {i} .", f"sentence number {i} .") for i in range(40)])


def test_white_space_other_than_blanks_stays_in_the_text(reference_data: Path, tmp_path: Path) -> None:
    """newstest2009 has 8 U+0085 in 2,525 German lines, at which str.splitlines() would break them."""
    prefix = reference_data / "data" / "newstest" / "newstest2009"
    prepare(options_for(prefix, pieces=2000, keep_separators=True), tmp_path / "out")
    text = lines_of(tmp_path / "out" / "text" / "train.de")
    assert len(text) == 2525
    assert sum(line.count("\x85") for line in text) == 8
    assert manifest_of(tmp_path / "out")["splits"]["train"]["white_space_made_blank"]["U+0085"] == 8
    pieces = lines_of(tmp_path / "out" / "pieces" / "train.de")
    assert len(pieces) == 2525
    for line, cut in zip(text, pieces, strict=True):
        assert "".join(cut.split()).replace("\u2581", " ").strip() == " ".join(line.split())


@pytest.mark.parametrize("form", ["NFKC", "NFC"])
@hypothesis.given(text=strategies.text())
def test_blocks_are_normalised_as_their_lines(form: Literal["NFKC", "NFC"], text: str) -> None:
    """Also where a line begins with a combining character."""
    change = normalizer("de", form.lower(), moses=False)
    for block in (text, f"a\n\u0308{text}\n\u0301"):
        assert change(block).split("\n") == [unicodedata.normalize(form, line) for line in block.split("\n")]


def test_normalisation_comes_before_the_filters(tmp_path: Path) -> None:
    """U+2024, one dot leader, is a period after NFKC, and a ligature is longer."""
    prefix = write_pairs(tmp_path / "c", [("\u2024", "a b"), ("\ufb03" * 51, "x" * 150), ("Ja .", "Yes .")])
    prepare(options_for(prefix, drop_lone_periods=True, max_chars=150), tmp_path / "out")
    assert manifest_of(tmp_path / "out")["dropped"]["train"] == {"a side is a period": 1, "too long": 1}
    assert lines_of(tmp_path / "out" / "text" / "train.de") == ["Ja ."]
    prepare(options_for(prefix, drop_lone_periods=True, max_chars=150, normalization="none"), tmp_path / "raw")
    assert manifest_of(tmp_path / "raw")["dropped"]["train"] == {}


def test_valid_and_test_are_whole_unless_filtered(tmp_path: Path) -> None:
    pairs = [("Ja .", "Yes ."), ("", "x"), (".", "."), ("a" * 20, "b"), ("c" * 30, "d" * 30)]
    prefix = write_pairs(tmp_path / "c", pairs)
    settings: dict[str, Any] = {"max_ratio": 4.0, "max_chars": 25, "drop_lone_periods": True}
    prepare(options_for(prefix, **settings), tmp_path / "out")
    assert [manifest_of(tmp_path / "out")["splits"][split]["pairs"] for split in SPLITS] == [1, 5, 5]
    prepare(options_for(prefix, **settings, filter_all=True), tmp_path / "all")
    assert [manifest_of(tmp_path / "all")["splits"][split]["pairs"] for split in SPLITS] == [1, 2, 2]
    assert lines_of(tmp_path / "all" / "text" / "test.en") == ["Yes .", "b"]  # a ratio is no reason there


def test_several_training_texts_one_after_the_other(prefix: Path, tmp_path: Path) -> None:
    more = write_pairs(tmp_path / "sub.corpus", [("mehr", "more")])
    prepare(options_for(prefix, train=(more, prefix)), tmp_path / "out")
    assert lines_of(tmp_path / "out" / "text" / "train.en") == ["more", *lines_of(Path(f"{prefix}.en"))]
    assert list(manifest_of(tmp_path / "out")["inputs"])[:3] == [
        "train/1/sub.corpus.de",
        "train/1/sub.corpus.en",
        "train/2/corpus.de",
    ]


@pytest.mark.parametrize(("threshold", "stays"), [(0, True), (40, True), (41, False)])
def test_threshold_on_a_side(threshold: int, stays: bool, prefix: Path, tmp_path: Path) -> None:
    """Each word but the number occurs 40 times, and is a piece that stays with a threshold of just that."""
    prepare(options_for(prefix, piece_threshold=threshold), tmp_path / "out")
    assert "\u2581Satz\t40" in lines_of(tmp_path / "out" / "sentencepiece.de.vocabulary")
    assert all(
        ("\u2581Satz" in line.split(" ")) == stays for line in lines_of(tmp_path / "out" / "pieces" / "train.de")
    )


@pytest.mark.parametrize("joint", [True, False])
def test_pieces_of_another_corpus(joint: bool, prefix: Path, tmp_path: Path) -> None:
    """A model trained on the other corpus can be trained further on this one."""
    other = write_pairs(tmp_path / "other", [("Haus Nummer 7 .", "house number 7 ."), ("Q", "Q")])
    prepare(options_for(prefix, joint=joint, binarise=True), tmp_path / "first")
    prepare(options_for(other, like=tmp_path / "first", binarise=True), tmp_path / "second")
    for side in ("de", "en"):
        for name in (f"sentencepiece.{side}.model", f"data-bin/dict.{side}.txt"):
            assert (tmp_path / "second" / name).read_bytes() == (tmp_path / "first" / name).read_bytes()
        assert lines_of(tmp_path / "second" / "pieces" / f"train.{side}")[1] == "\u2581 Q"
    counts = manifest_of(tmp_path / "second")["splits"]["train"]
    assert counts["de_pieces"] > 5 and counts["de_unknown_tokens"] > 0
    assert "like/sentencepiece.de.model" in manifest_of(tmp_path / "second")["inputs"]
    with pytest.raises(PrepareError, match=r"--like .*: expected the folder of a corpus of de and en"):
        prepare(options_for(other, like=tmp_path), tmp_path / "third")
    with pytest.raises(PrepareError, match="its text was prepared with --normalization nfkc --no-moses; give the same"):
        prepare(options_for(other, like=tmp_path / "first", normalization="nfc"), tmp_path / "third")


def test_separate_dictionaries_and_workers(prefix: Path, tmp_path: Path) -> None:
    options = options_for(prefix, joint=False, binarise=True)
    prepare(options, tmp_path / "one")
    german, english = ((tmp_path / "one" / "data-bin" / f"dict.{side}.txt").read_text() for side in ("de", "en"))
    assert german != english
    models = {side: (tmp_path / "one" / f"sentencepiece.{side}.model").read_bytes() for side in ("de", "en")}
    assert b"umber" not in models["de"] and b"ummer" not in models["en"]
    prepare(options, tmp_path / "two", workers=2)
    assert (tmp_path / "one" / "manifest.json").read_bytes() == (tmp_path / "two" / "manifest.json").read_bytes()


@pytest.mark.parametrize("settings", [{}, {"joint": False}, {"piece_threshold": 30}], ids=["joint", "separate", "few"])
def test_text_of_known_letters_has_no_unknown_piece(settings: dict[str, Any], prefix: Path, tmp_path: Path) -> None:
    """Letters and shorter pieces that training text never has by themselves are in the dictionary."""
    valid = write_pairs(tmp_path / "valid", [("ztaS Satmer 0 .", "ecnetnes numsent 1 .")])
    prepare(options_for(prefix, valid=valid, pieces=90, binarise=True, **settings), tmp_path / "out")
    counts = manifest_of(tmp_path / "out")["splits"]
    for language in ("de", "en"):
        dictionary = lines_of(tmp_path / "out" / "data-bin" / f"dict.{language}.txt")
        (pieces,) = lines_of(tmp_path / "out" / "pieces" / f"valid.{language}")
        assert set(pieces.split(" ")) <= {line.rpartition(" ")[0] for line in dictionary}
        assert any(line.endswith(" 0") for line in dictionary)
        assert [counts[split][f"{language}_unknown_tokens"] for split in SPLITS] == [0, 0, 0]
    written = {path.read_bytes() for path in (tmp_path / "out" / "data-bin").glob("dict.*")}
    assert len(written) == (1 if settings.get("joint", True) else 2)


def test_unknown_pieces_are_counted(prefix: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    valid = write_pairs(tmp_path / "valid", [("Ω Satz", "sentence")])
    prepare(options_for(prefix, valid=valid, pieces=90), tmp_path / "out")
    assert manifest_of(tmp_path / "out")["splits"]["valid"] == {
        "pairs_read": 1,
        "pairs": 1,
        "de_pieces": 3,
        "de_unknown_tokens": 1,
        "de_unknown_rate": 0.333333,
        "en_pieces": 1,
        "en_unknown_tokens": 0,
        "en_unknown_rate": 0.0,
    }
    said = capsys.readouterr().err.splitlines()
    assert "warning: mt: valid.de: 1 of 3 tokens are unknown (33.33%)" in said
    assert "mt: valid.en: 0 of 1 tokens are unknown (0.00%)" in said


def test_nothing_left_is_an_error_with_the_reasons(tmp_path: Path) -> None:
    prefix = write_pairs(tmp_path / "c", [("", "x"), (".", "."), ("", "")])
    with pytest.raises(
        PrepareError, match=r"--train: none of the 3 pairs read is left .*period: 1, a side is empty: 2"
    ):
        prepare(options_for(prefix, drop_lone_periods=True), tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.de", "c.en"]


@pytest.mark.parametrize(
    ("source", "target", "needed"),
    [
        ("de", "en", None),
        ("de-DE", "pt-BR", "--source-lang de-DE --target-lang pt-BR"),
        ("de", "zh-Hans-CN", "--source-lang de --target-lang zh-Hans-CN"),
    ],
)
def test_what_fairseq_must_be_told_of_languages(source: str, target: str, needed: str | None, tmp_path: Path) -> None:
    from fairseq.data.data_utils import infer_language_pair

    options = Options(source, target, (Path("c"),), Path("c"), Path("c"))
    assert corpus.languages_for_fairseq(options) == needed
    (tmp_path / f"train.{source}-{target}.{source}.idx").touch()
    actual = infer_language_pair(str(tmp_path))
    assert (tuple(actual) == (source, target)) == (needed is None), "fairseq's rule has changed"


def test_protobuf_is_asked_for_before_the_work(prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentencepiece.sentencepiece_model_pb2", None)
    monkeypatch.setattr(corpus, "write_text", lambda *arguments: pytest.fail("work was begun"))
    with pytest.raises(PrepareError, match=r"^--piece-threshold needs .* \(pip install --upgrade protobuf .*\)$"):
        prepare(options_for(prefix, piece_threshold=2), tmp_path / "out")
