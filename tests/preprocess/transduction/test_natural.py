"""Number agreement in sentences that are read from files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack_preprocess.errors import PrepareError
from fairseq_stack_preprocess.transduction.natural import Options, Sentence, prepare, read_sentences
from tests.preprocess.corpus_folders import manifest_of

TABS = 'VBZ\tthe key to the cabinets\nVBP\tthe "keys" , here ,\nVBZ\ta <unk>\n'
COMMAS = 'VBZ,the key to the cabinets\nVBP,"the ""keys"" , here ,"\nVBZ,a <unk>\n'
SENTENCES = [
    Sentence(("the", "key", "to", "the", "cabinets"), "VBZ"),
    Sentence(("the", '"keys"', ",", "here", ","), "VBP"),
    Sentence(("a", "<unk>"), "VBZ"),
]


def write(path: Path, text: str) -> Path:
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize(
    ("name", "text"), [("a.train", TABS), ("a.tsv.gz", TABS), ("a.csv", COMMAS), ("a.csv.gz", COMMAS)]
)
def test_both_forms(name: str, text: str, tmp_path: Path) -> None:
    assert list(read_sentences(write(tmp_path / name, text))) == SENTENCES


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("a.tsv", "VBZ the dog", "expected a label and words, separated by a tab, got 1 fields"),
        ("a.csv", "VBZ,the , dog", "expected a label and words, separated by a comma, got 3 fields"),
        ("a.csv", 'VBZ,"the dog', "unexpected end of data; a field that contains a comma must be quoted"),
        ("a.csv", 'VBZ,"the"dog', "',' expected after '\"'; a field that contains a comma must be quoted"),
        ("a.csv", "label,sentence", "the label must be VBZ or VBP, got 'label'"),
        ("a.tsv", "VBZ\t ", "no words after the label"),
        ("a.tsv", "VBZ\tthe </s> dog", "fairseq reserves the symbol </s>; it cannot be a word of the text"),
        ("a.tsv", "VBZ\tthe <blank> dog", "<blank> is reserved; it cannot be a word of the text"),
        ("a.tsv", "VBZ\tthe\u00a0dog", "U+00A0 at position 4: fairseq would split the word there; "),
    ],
)
def test_malformed_lines(name: str, line: str, message: str, tmp_path: Path) -> None:
    good = "VBZ\tthe dog" if name.endswith(".tsv") else "VBZ,the dog"
    path = write(tmp_path / name, f"{good}\n{line}\n{good}\n")
    with pytest.raises(PrepareError) as caught:
        list(read_sentences(path))
    assert str(caught.value).startswith(f"{path}, line 2: {message}")


def options(folder: Path, **more: Any) -> Options:
    write(folder / "train.csv", COMMAS + "VBZ,the dog\n")
    write(folder / "other.tsv", "VBP\tthe dogs to key\nVBZ\tdog\n")
    train, other = folder / "train.csv", folder / "other.tsv"
    return Options(train, other, other, **{"binarise": False, **more})


def texts(folder: Path, split: str) -> list[tuple[str, str]]:
    sides = (
        (folder / "text" / f"{split}.{side}").read_text(encoding="utf-8").splitlines() for side in ("input", "target")
    )
    return list(zip(*sides, strict=True))


def test_files(tmp_path: Path) -> None:
    prepare(options(tmp_path, most_words=4), tmp_path / "out")
    task = json.loads((tmp_path / "out" / "task.json").read_text(encoding="utf-8"))
    assert task == {
        "task": "natural_agreement",
        "alphabet": ["the", ",", '"keys"', "a", "<unknown>", "VBZ", "VBP", "<blank>"],
        "blank": "<blank>",
        "scored": ["VBZ", "VBP"],
        "longest": {"train": 5, "valid": 4, "test": 4},
    }
    assert texts(tmp_path / "out", "train")[1:3] == [
        ('the "keys" , <unknown> ,', "<blank> <blank> <blank> <blank> VBP"),
        ("a <unknown>", "<blank> VBZ"),
    ]
    assert texts(tmp_path / "out", "test") == [
        ("the <unknown> <unknown> <unknown>", "<blank> <blank> <blank> VBP"),
        ("<unknown>", "VBZ"),
    ]
    manifest = manifest_of(tmp_path / "out")
    assert manifest["splits"]["test"]["unknown_words"] == 4
    assert list(manifest["inputs"]) == ["train/train.csv", "valid/other.tsv", "test/other.tsv"]


def test_long_sentences_are_dropped_and_counted(tmp_path: Path) -> None:
    prepare(options(tmp_path, max_length=3), tmp_path / "out")
    manifest = manifest_of(tmp_path / "out")
    assert manifest["dropped"] == {
        split: {"more than 3 words": n} for split, n in (("train", 2), ("valid", 1), ("test", 1))
    }
    with pytest.raises(PrepareError, match=r"train\.csv: no sentence is left; raise --max-length"):
        prepare(options(tmp_path, max_length=1), tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_limit(tmp_path: Path) -> None:
    prepare(options(tmp_path, limit=1), tmp_path / "out")
    assert len(texts(tmp_path / "out", "train")) == 1
