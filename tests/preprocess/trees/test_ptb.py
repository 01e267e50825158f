"""The corpus ptb: sections, side files, classes, slips; and the oracles of nltk's sample from end to end."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack_preprocess.errors import PrepareError
from fairseq_stack_preprocess.trees import ptb
from fairseq_stack_preprocess.trees.ptb import Options, find_files, prepare
from fairseq_stack_preprocess.trees.side_files import find_mrg_files
from fairseq_stack_preprocess.trees.word_classes import Fingerprint
from tests.preprocess.corpus_folders import manifest_of
from tests.preprocess.trees.treebanks import (
    CAT,
    DOG,
    first_trees,
    nltk_sample,
    oracle_blocks,
    oracle_map,
    ptb_folder,
    text_of,
    write_files,
)


def run(folder: Path, raw: Path, **options: Any) -> dict[str, Any]:
    """Prepare the corpus without fairseq; return the manifest."""
    prepare(Options(raw=raw, binarise=False, **options), folder)
    return manifest_of(folder)


@pytest.fixture(scope="module")
def from_sample(reference_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus made of nltk's sample, laid out as the oracles divide it: files in made-up section folders, without
    the last tree of each, which the oracles lack."""
    folder = tmp_path_factory.mktemp("sample")
    files = {path.name: path for path in nltk_sample(reference_data, folder)}
    sections = {"train": "02", "dev": "24", "test": "23"}
    number: dict[str, int] = {}
    for split, _, file, index in oracle_map(reference_data):
        number[f"{sections[split]}/{file}"] = int(index)
    texts = {name: first_trees(files[name.split("/")[1]], count) for name, count in number.items()}
    run(folder / "out", write_files(folder / "raw", texts))
    return folder / "out"


@pytest.mark.parametrize(("split", "name"), [("train", "train"), ("valid", "dev")])
def test_oracles_from_end_to_end(split: str, name: str, from_sample: Path, reference_data: Path) -> None:
    """Every sentence of the oracle, no other, with its words, tags and classes."""
    blocks = {(block.file, block.index): block for block in oracle_blocks(reference_data, name)}
    columns = [text_of(from_sample, f"{split}.{side}") for side in ("origin", "words", "tags", "txt")]
    seen: dict[str, int] = {}
    for origin, words, tags, classes in zip(*columns, strict=True):
        file = origin.split("\t")[0].split("/")[1]
        seen[file] = seen.get(file, 0) + 1
        block = blocks.pop((file, seen[file]))
        assert (words, tags, classes) == (block.words, block.tags, block.classes)
    assert not blocks


def test_side_files(tmp_path: Path) -> None:
    manifest = run(tmp_path / "out", ptb_folder(tmp_path / "raw"))
    out = tmp_path / "out"
    assert text_of(out, "train.trees")[1] == "(S (NP (DT The) (NN dog)) (VP (VBD barked) (ADVP (RB loudly))) (. .))"
    assert text_of(out, "train.origin") == [
        "02/wsj_0201.mrg\t1",
        "02/wsj_0201.mrg\t8",
        "02/wsj_0201.mrg\t9",
        "02/wsj_0202.mrg\t2",
    ]
    assert text_of(out, "train.spans")[1] == "1-2 3-4 3-5 1-5"
    assert text_of(out, "train.attach")[1] == "1 1 3 3 2"
    assert manifest["dropped"] == {"train": {"no word but traces": 1}, "valid": {}, "test": {}}
    assert manifest["splits"]["train"] == {
        "files": 2, "sentences": 4, "words": 22, "distinct_words": 13, "longest": 7, "deepest": 5,
        "distinct_tokens": 13, "classes": 6,
    }  # fmt: skip
    assert sorted(manifest["inputs"]) == [
        "02/wsj_0201.mrg", "02/wsj_0202.mrg", "23/wsj_2300.mrg", "24/wsj_2423.mrg", "24/wsj_2424.mrg",
    ]  # fmt: skip
    assert manifest["fingerprint_of_train"]["is_dyer_2016"] is False
    assert str(tmp_path) not in json.dumps(manifest)


@pytest.mark.parametrize("flatten", [False, True], ids=["folders", "flat"])
def test_layouts(flatten: bool, tmp_path: Path) -> None:
    raw = ptb_folder(tmp_path / "raw")
    if flatten:
        flat = {path.name: path.read_text() for path in raw.rglob("*.mrg")}
        shutil.rmtree(raw)
        write_files(raw, {("x/" if name < "wsj_02" else "") + f"{name}.gz": text for name, text in flat.items()})
    run(tmp_path / "out", raw)
    assert len(text_of(tmp_path / "out", "train.words")) == 4
    assert text_of(tmp_path / "out", "test.words") == ["- Zurich cats"]


def test_folders_decide_about_sections_before_names(tmp_path: Path) -> None:
    raw = write_files(tmp_path, {f"a/{n}/wsj_0001.mrg": DOG for n in ("05", "23", "24")} | {"wsj_0301.mrg": CAT})
    files = find_files(Options(raw=raw))
    assert {split: [file.name for file in files[split]] for split in files} == {
        "train": ["a/05/wsj_0001.mrg", "wsj_0301.mrg"],
        "valid": ["a/24/wsj_0001.mrg"],
        "test": ["a/23/wsj_0001.mrg"],
    }


def test_hidden_files_are_left_out(tmp_path: Path) -> None:
    write_files(tmp_path, {"02/wsj_0201.mrg": DOG, "02/._wsj_0201.mrg": "", ".git/02/wsj_0202.mrg": CAT})
    assert [path.name for path in find_mrg_files(tmp_path)] == ["wsj_0201.mrg"]


def test_slip_in_section_24(tmp_path: Path) -> None:
    run(tmp_path / "out", ptb_folder(tmp_path / "raw"), slips=True)
    origins = text_of(tmp_path / "out", "valid.origin")
    assert origins == ["24/wsj_2424.mrg\t1", "24/wsj_2424.mrg\t1"]
    assert len(text_of(tmp_path / "out", "train.words")) == 4


def test_slip_in_train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence is left out before words are counted: what is a singleton without it is not known."""
    monkeypatch.setattr(ptb, "SLIP_SENTENCE", 3)
    manifest = run(tmp_path / "out", ptb_folder(tmp_path / "raw"), slips=True)
    assert text_of(tmp_path / "out", "train.txt")[0] == "The UNK-LC UNK-LC UNK-LC UNK-LC UNK-LC ."
    assert text_of(tmp_path / "out", "train.origin")[1:] == ["02/wsj_0201.mrg\t8", "02/wsj_0202.mrg\t2"]
    assert manifest["dropped"]["train"] == {ptb.SLIP_REASON: 1, "no word but traces": 1}


def test_slip_in_train_is_sentence_33571(tmp_path: Path) -> None:
    train = "(NN a)\n" * 33_569 + "(NN b)\n(NN c)\n(NN d)\n"
    files = {"02/wsj_0201.mrg": train, "24/wsj_2401.mrg": DOG, "23/wsj_2301.mrg": DOG}
    raw = write_files(tmp_path / "raw", files)
    run(tmp_path / "out", raw, slips=True)
    assert text_of(tmp_path / "out", "train.words")[-2:] == ["b", "d"]
    assert text_of(tmp_path / "out", "train.origin")[-1] == "02/wsj_0201.mrg\t33572"


def test_fingerprint_is_recognised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = ptb_folder(tmp_path / "raw")
    actual = run(tmp_path / "out", raw)["fingerprint_of_train"]
    monkeypatch.setattr(ptb, "DYER_2016", Fingerprint(actual["types"], actual["tokens"], actual["sha256"]))
    assert run(tmp_path / "again", raw)["fingerprint_of_train"] == {**actual, "is_dyer_2016": True}
    limited = run(tmp_path / "limited", raw, limit=2)
    assert limited["fingerprint_of_train"]["is_dyer_2016"] is False
    assert limited["splits"]["train"]["sentences"] == 2


def test_missing_sections_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path / "out", ptb_folder(tmp_path / "raw"))
    assert "ptb: no file of section 03, 04, 05, 06," in capsys.readouterr().err
    write_files(tmp_path / "raw", {f"{section:02}/wsj_{section:02}01.mrg": DOG for section in range(3, 22)})
    run(tmp_path / "all", tmp_path / "raw")
    assert "no file" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "raw holds no .mrg file"),
        ({"02/wsj_0201.mrg": DOG, "23/wsj_2301.mrg": DOG}, r"of section 24 \(valid\); there are sections 02, 23"),
        ({"cf/cf01.mrg": DOG}, r"cf01\.mrg: expected a name such as"),
        ({"02/wsj_0201.mrg": DOG, "02/wsj_0201.mrg.gz": DOG}, "are two copies of one file of section 02"),
        ({"02/wsj_0201.mrg": DOG, "wsj_0201.mrg": DOG}, "are two copies of one file of section 02"),
    ],
    ids=["none", "split", "brown", "gzipped-too", "flat-too"],
)  # fmt: skip
def test_folders_that_cannot_be_used(files: dict[str, str], message: str, tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    with pytest.raises(PrepareError, match=message):
        run(tmp_path / "out", write_files(tmp_path / "raw", files))
    assert not (tmp_path / "out").exists()
