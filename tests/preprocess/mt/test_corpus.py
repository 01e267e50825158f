"""The corpus mt: real text with every count explained, the paper's set-up, what is written, and its speed."""

from __future__ import annotations

import gzip
import json
import random
import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import hypothesis
import pytest
import sentencepiece
from hypothesis import strategies

from fairseq_stack_preprocess.errors import PrepareError
from fairseq_stack_preprocess.mt import corpus as mt
from fairseq_stack_preprocess.mt.corpus import Options, prepare, transforms
from fairseq_stack_preprocess.mt.presets import PRESETS

PAPER = PRESETS["europarl-dusell-2024"].options
SPLITS = ("train", "valid", "test")


def options_for(prefix: Path, **settings: Any) -> Options:
    """Options with the same text for each split."""
    values = {"source": "de", "target": "en", "train": (prefix,), "valid": prefix, "test": prefix, "pieces": 60}
    return Options(**{**values, "binarise": False, **settings})


def write_pairs(prefix: Path, pairs: list[tuple[str, str]]) -> Path:
    for language, lines in zip(("de", "en"), zip(*pairs, strict=True), strict=True):
        Path(f"{prefix}.{language}").write_bytes("".join(f"{line}\n" for line in lines).encode())
    return prefix


def lines_of(path: Path) -> list[str]:
    return path.read_bytes().decode().removesuffix("\n").split("\n")


def manifest_of(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return content


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """A corpus of 40 pairs, all different."""
    return write_pairs(tmp_path / "corpus", [(f"Satz Nummer {i} .", f"sentence number {i} .") for i in range(40)])


# The paper's set-up on real text


class Independent:
    """The paper's rules written down once more, a list at a time, from the description of its preprocessing."""

    def __init__(self, prefix: Path, is_train: bool) -> None:
        sides = []
        for language in ("de", "en"):
            text = gzip.decompress(Path(f"{prefix}.{language}.gz").read_bytes()).decode("utf-8")
            sides.append([unicodedata.normalize("NFKC", line) for line in text.removesuffix("\n").split("\n")])
        pairs = list(zip(*sides, strict=True))
        self.read = len(pairs)
        self.dropped: dict[str, int] = {}
        rules = {
            "a side is empty": lambda a, b: a.strip() == "" or b.strip() == "",
            "a side is a period": lambda a, b: a.strip() == "." or b.strip() == ".",
            "length ratio": lambda a, b: is_train and max(len(a) / len(b), len(b) / len(a)) > 4,
            "too long": lambda a, b: len(a) > 150 or len(b) > 150,
        }
        for name, rule in rules.items():
            rest = [pair for pair in pairs if not rule(*pair)]
            if len(rest) < len(pairs):
                self.dropped[name] = len(pairs) - len(rest)
            pairs = rest
        self.pairs = pairs


@pytest.fixture(scope="module")
def independent(reference_data: Path) -> dict[str, Independent]:
    data = reference_data / "data"
    return {
        "train": Independent(data / "europarl" / "europarl-v7.de-en.first5000", is_train=True),
        "valid": Independent(data / "newstest" / "newstest2016", is_train=False),
        "test": Independent(data / "newstest" / "newstest2017", is_train=False),
    }


@pytest.fixture(scope="module")
def europarl(reference_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The paper's set-up on the first 5,000 pairs of Europarl, sampled down to 2,000."""
    data = reference_data / "data"
    texts: dict[str, Any] = {
        "train": (data / "europarl" / "europarl-v7.de-en.first5000",),
        "valid": data / "newstest" / "newstest2016",
        "test": data / "newstest" / "newstest2017",
    }
    folder = tmp_path_factory.mktemp("europarl") / "out"
    prepare(Options(**{**PAPER, **texts, "sample": 2000}), folder)
    return folder


def test_independent_counts_are_the_known_ones(independent: dict[str, Independent]) -> None:
    """11 German and 17 English lines of the 5,000 are empty, none on both sides."""
    assert [independent[split].read for split in SPLITS] == [5000, 2999, 3004]
    assert independent["train"].dropped == {
        "a side is empty": 11 + 17,
        "a side is a period": 5,
        "length ratio": 4,
        "too long": 2434,
    }
    assert independent["valid"].dropped == {"too long": 926}
    assert independent["test"].dropped == {"too long": 911}


@pytest.mark.parametrize("split", SPLITS)
def test_every_pair_of_the_paper_s_set_up_is_accounted_for(
    split: str, europarl: Path, independent: dict[str, Independent]
) -> None:
    manifest, expected = manifest_of(europarl), independent[split]
    counts = manifest["splits"][split]
    sampled = {"not in the sample": len(expected.pairs) - 2000} if split == "train" else {}
    assert manifest["dropped"][split] == {**expected.dropped, **sampled}
    assert counts["pairs_read"] == expected.read
    assert counts["pairs"] == expected.read - sum(manifest["dropped"][split].values())


@pytest.mark.parametrize("split", SPLITS)
def test_text_is_what_the_rules_leave(split: str, europarl: Path, independent: dict[str, Independent]) -> None:
    """In train, in the order in which the authors' rule draws."""
    written = list(zip(*(lines_of(europarl / "text" / f"{split}.{side}") for side in ("de", "en")), strict=True))
    pairs = independent[split].pairs
    assert written == (random.Random(123).sample(pairs, 2000) if split == "train" else pairs)


@pytest.mark.parametrize("language", ["de", "en"])
def test_pieces_are_those_of_the_model_and_frequent(language: str, europarl: Path) -> None:
    rows = (row.split("\t") for row in lines_of(europarl / f"sentencepiece.{language}.vocabulary"))
    vocabulary = {piece: int(count) for piece, count in rows}
    model = sentencepiece.SentencePieceProcessor(model_file=str(europarl / f"sentencepiece.{language}.model"))
    for split in SPLITS:
        lines = [line.split(" ") for line in lines_of(europarl / "pieces" / f"{split}.{language}")]
        text = lines_of(europarl / "text" / f"{split}.{language}")
        assert lines == model.encode(text, out_type=str)
        assert model.decode(lines) == [" ".join(line.split()) for line in text]
        pieces = Counter(piece for line in lines for piece in line)
        # A character that the model does not know joins those next to it that it does not know either.
        rare = {piece for piece in pieces if len(piece) > 1 and vocabulary.get(piece, 0) < 50}
        assert all(model.piece_to_id(piece) == model.unk_id() for piece in rare)
        assert not (split == "train" and rare)
        assert manifest_of(europarl)["splits"][split][f"{language}_pieces"] == pieces.total()


def test_dictionary_is_joint_and_has_the_training_pieces_only(europarl: Path) -> None:
    german, english = (lines_of(europarl / "data-bin" / f"dict.{language}.txt") for language in ("de", "en"))
    assert german == english
    counts: Counter[str] = Counter()
    for language in ("de", "en"):
        counts.update(piece for line in lines_of(europarl / "pieces" / f"train.{language}") for piece in line.split())
    assert dict(row.rsplit(" ", 1) for row in german) == {piece: str(count) for piece, count in counts.items()}
    assert manifest_of(europarl)["vocabulary"]["de_dictionary"] == len(counts) + 4


def test_binary_format_has_the_pieces(europarl: Path) -> None:
    from fairseq.data import Dictionary, data_utils

    dictionary = Dictionary.load(str(europarl / "data-bin" / "dict.de.txt"))
    for split in SPLITS:
        for language in ("de", "en"):
            data = data_utils.load_indexed_dataset(str(europarl / "data-bin" / f"{split}.de-en.{language}"), dictionary)
            lines = lines_of(europarl / "pieces" / f"{split}.{language}")
            assert len(data) == len(lines)
            known = {*dictionary.symbols}
            for index in (0, len(data) // 2, len(data) - 1):
                pieces = [piece if piece in known else "<unk>" for piece in lines[index].split()]
                assert [dictionary[token] for token in data[index]] == [*pieces, "</s>"]


def test_manifest_names_inputs_versions_and_options(europarl: Path, reference_data: Path) -> None:
    manifest = manifest_of(europarl)
    assert manifest["inputs"]["train/europarl-v7.de-en.first5000.de.gz"].startswith("c31e1fa433726f70")
    assert len(manifest["inputs"]) == 6
    assert manifest["options"]["train"] == ["europarl-v7.de-en.first5000"]
    assert {"fairseq_stack", "python", "fairseq", "sentencepiece"} == set(manifest["versions"])
    assert manifest["unicode"] == unicodedata.unidata_version
    assert str(reference_data) not in (europarl / "manifest.json").read_text(encoding="utf-8")


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


# Options


@pytest.mark.parametrize("form", ["NFKC", "NFC"])
@hypothesis.given(text=strategies.text())
def test_blocks_are_normalised_as_their_lines(form: Literal["NFKC", "NFC"], text: str) -> None:
    """Also where a line begins with a combining character."""
    change, _ = transforms(options_for(Path("x"), normalization=form.lower()))
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


def test_moses_punctuation(tmp_path: Path) -> None:
    prefix = write_pairs(tmp_path / "c", [("„Ja“ , sagte er…", "“Yes”, he said…"), ("", "")])
    prepare(options_for(prefix, moses=True, normalization="none"), tmp_path / "out")
    from sacremoses import MosesPunctNormalizer

    for language, line in (("de", "„Ja“ , sagte er…"), ("en", "“Yes”, he said…")):
        expected = MosesPunctNormalizer(lang=language).normalize(line)
        assert lines_of(tmp_path / "out" / "text" / f"test.{language}") == [expected, ""]
        assert '"' in expected
    assert "sacremoses" in manifest_of(tmp_path / "out")["versions"]


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


@pytest.mark.parametrize("rule", ["reservoir", "authors"])
def test_samples(rule: str, prefix: Path, tmp_path: Path) -> None:
    prepare(options_for(prefix, sample=10, sample_rule=rule, seed=5), tmp_path / "out")
    sides = [lines_of(tmp_path / "out" / "text" / f"train.{language}") for language in ("de", "en")]
    everything = list(zip(*(lines_of(Path(f"{prefix}.{language}")) for language in ("de", "en")), strict=True))
    pairs = list(zip(*sides, strict=True))
    assert len(set(pairs)) == 10
    assert set(pairs) <= set(everything)
    assert (pairs == sorted(pairs, key=everything.index)) == (rule == "reservoir")
    assert manifest_of(tmp_path / "out")["dropped"]["train"] == {"not in the sample": 30}
    assert manifest_of(tmp_path / "out")["splits"]["train"]["pairs_read"] == 40


def test_limit(prefix: Path, tmp_path: Path) -> None:
    prepare(options_for(prefix, limit=7, sample=3), tmp_path / "out")
    counts = manifest_of(tmp_path / "out")["splits"]
    assert [(counts[split]["pairs_read"], counts[split]["pairs"]) for split in SPLITS] == [(7, 3), (7, 7), (7, 7)]


@pytest.mark.parametrize(("threshold", "stays"), [(0, True), (40, True), (41, False)])
def test_threshold_on_a_side(threshold: int, stays: bool, prefix: Path, tmp_path: Path) -> None:
    """Each word but the number occurs 40 times, and is a piece that stays with a threshold of just that."""
    prepare(options_for(prefix, piece_threshold=threshold), tmp_path / "out")
    assert "\u2581Satz\t40" in lines_of(tmp_path / "out" / "sentencepiece.de.vocabulary")
    assert all(
        ("\u2581Satz" in line.split(" ")) == stays for line in lines_of(tmp_path / "out" / "pieces" / "train.de")
    )


def test_separate_models(prefix: Path, tmp_path: Path) -> None:
    prepare(options_for(prefix, joint=False), tmp_path / "out")
    models = [(tmp_path / "out" / f"sentencepiece.{language}.model").read_bytes() for language in ("de", "en")]
    assert models[0] != models[1]
    assert b"umber" not in models[0]
    assert b"ummer" not in models[1]


def test_separate_dictionaries_and_workers(prefix: Path, tmp_path: Path) -> None:
    options = options_for(prefix, joint=False, binarise=True)
    prepare(options, tmp_path / "one")
    german, english = ((tmp_path / "one" / "data-bin" / f"dict.{side}.txt").read_text() for side in ("de", "en"))
    assert german != english
    prepare(options, tmp_path / "two", workers=2)
    assert (tmp_path / "one" / "manifest.json").read_bytes() == (tmp_path / "two" / "manifest.json").read_bytes()


def test_sgm_and_xml_give_the_same_as_plain_text(prefix: Path, tmp_path: Path) -> None:
    sides = {language: lines_of(Path(f"{prefix}.{language}")) for language in ("de", "en")}
    segments = {
        language: "".join(f'<seg id="{number}">{line}</seg>\n' for number, line in enumerate(lines))
        for language, lines in sides.items()
    }
    for language, role in (("de", "src"), ("en", "ref")):
        (tmp_path / f"s-{role}.{language}.sgm").write_text(f'<doc docid="d">{segments[language]}</doc>')
    both = f'<src lang="de">{segments["de"]}</src><ref lang="en">{segments["en"]}</ref>'
    (tmp_path / "x.xml").write_text(f'<dataset><doc id="d">{both}</doc></dataset>')
    for form in ("s", "x"):
        prepare(options_for(tmp_path / form), tmp_path / "out" / form)
        for language, lines in sides.items():
            assert lines_of(tmp_path / "out" / form / "text" / f"test.{language}") == lines


def test_same_bytes_again(prefix: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        prepare(options_for(prefix, sample=20, piece_threshold=3), tmp_path / name)
    assert (tmp_path / "one" / "manifest.json").read_bytes() == (tmp_path / "two" / "manifest.json").read_bytes()
    assert {path.name for path in (tmp_path / "one").rglob("*") if path.is_file()} >= {"train.de", "manifest.json"}


def test_nothing_left_is_an_error_with_the_reasons(tmp_path: Path) -> None:
    prefix = write_pairs(tmp_path / "c", [("", "x"), (".", "."), ("", "")])
    with pytest.raises(
        PrepareError, match=r"--train: none of the 3 pairs read is left .*period: 1, a side is empty: 2"
    ):
        prepare(options_for(prefix, drop_lone_periods=True), tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.de", "c.en"]


def test_interrupted_run_leaves_nothing(prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: object, **settings: object) -> Iterator[str]:
        raise KeyboardInterrupt

    monkeypatch.setattr(mt, "train_model", interrupt)
    with pytest.raises(KeyboardInterrupt):
        prepare(options_for(prefix), tmp_path / "new" / "out")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"source": "de-"}, r"--source: expected letters, digits, _ and - such as de or pt-BR, got 'de-'"),
        ({"target": "de"}, "--source and --target are both de"),
        ({"train": ()}, "--train: expected at least one prefix"),
        ({"max_ratio": 0.5}, r"--max-ratio must be at least 1, got 0\.5"),
        ({"max_ratio": float("nan")}, "--max-ratio must be at least 1, got nan"),
        ({"max_chars": 0}, "--max-chars must be at least 1, got 0"),
        ({"sample": 0}, "--sample must be at least 1, got 0"),
        ({"limit": 0}, "--limit must be at least 1, got 0"),
        ({"seed": -1}, "--seed must be at least 0, got -1"),
        ({"pieces": 1}, "--pieces must be at least 2, got 1"),
        ({"piece_threshold": -1}, "--piece-threshold must be at least 0, got -1"),
        ({"normalization": "nfd"}, "--normalization: expected one of nfkc, nfc, none, got 'nfd'"),
        ({"sample_rule": "first"}, "--sample-rule: expected one of reservoir, authors, got 'first'"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_options_out_of_range(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(PrepareError, match=message):
        options_for(Path("x"), **settings)


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
    assert mt.languages_for_fairseq(options) == needed
    (tmp_path / f"train.{source}-{target}.{source}.idx").touch()
    found = infer_language_pair(str(tmp_path))
    assert (tuple(found) == (source, target)) == (needed is None), "fairseq's rule has changed"
