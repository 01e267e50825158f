"""Mikolov's text of the Penn Treebank, as sentences and as a stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairseq_stack_preprocess.errors import PrepareError
from fairseq_stack_preprocess.trees.mikolov import Options, prepare
from tests.preprocess.corpus_folders import lines_of, manifest_of
from tests.preprocess.trees.treebanks import write_files

TEXTS = {
    "ptb.train.txt": " the <unk> costs N \n\n no it was n't \n",
    "ptb.valid.txt.gz": " the dog \n",
    "ptb.test.txt": "it\n",
}


def run(folder: Path, raw: Path, **options: Any) -> dict[str, Any]:
    prepare(Options(raw=raw, binarise=False, **options), folder)
    return manifest_of(folder)


def test_sentences(tmp_path: Path) -> None:
    manifest = run(tmp_path / "out", write_files(tmp_path / "raw", TEXTS))
    assert lines_of(tmp_path / "out" / "text" / "train.txt") == ["the <unk> costs N", "no it was n't"]
    assert lines_of(tmp_path / "out" / "text" / "valid.txt") == ["the dog"]
    assert manifest["options"]["mikolov"] == "sentences"
    assert manifest["splits"]["train"] == {"sentences": 2, "words": 8, "distinct_words": 8, "unk": 1, "longest": 4}
    assert manifest["dropped"]["train"] == {"empty line": 1}
    assert sorted(manifest["inputs"]) == sorted(TEXTS)


def test_stream(tmp_path: Path) -> None:
    manifest = run(tmp_path / "out", write_files(tmp_path / "raw", TEXTS), form="stream")
    (line,) = lines_of(tmp_path / "out" / "text" / "train.txt")
    assert line == "the <unk> costs N <eos> no it was n't <eos>"
    assert manifest["splits"]["train"]["sentences"] == 2


def test_real_text(reference_data: Path, tmp_path: Path) -> None:
    """The figures of the literature: 929,589 / 73,760 / 82,430 tokens with the ends of sentences, 10,000 types."""
    manifest = run(tmp_path / "out", reference_data / "data" / "ptb" / "mikolov", form="stream")
    splits = manifest["splits"]
    assert {
        split: (counts["sentences"], counts["words"] + counts["sentences"]) for split, counts in splits.items()
    } == {
        "train": (42_068, 929_589),
        "valid": (3_370, 73_760),
        "test": (3_761, 82_430),
    }
    assert splits["train"]["distinct_words"] == 9_999
    (stream,) = lines_of(tmp_path / "out" / "text" / "valid.txt")
    assert len(stream.split(" ")) == 73_760
    assert stream.count("<eos>") == 3_370


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"ptb.test.txt": None}, r"there is neither ptb\.test\.txt nor ptb\.test\.txt\.gz"),
        ({"ptb.test.txt.gz": "it\n"}, r"there are both ptb\.test\.txt and ptb\.test\.txt\.gz"),
        ({"ptb.train.txt": "a\nb <eos>\n"}, r"ptb\.train\.txt, line 2: holds <eos>"),
        ({"ptb.train.txt": "a\nb </s>\n"}, r"ptb\.train\.txt, line 2: fairseq reserves the symbol </s>"),
        ({"ptb.test.txt": " \n"}, r"ptb\.test\.txt, line 1: the file holds no sentence"),
    ],
    ids=["missing", "twice", "eos", "special", "blank"],
)
def test_mistakes(files: dict[str, str | None], message: str, tmp_path: Path) -> None:
    texts = {name: text for name, text in {**TEXTS, **files}.items() if text is not None}
    with pytest.raises(PrepareError, match=message):
        run(tmp_path / "out", write_files(tmp_path / "raw", texts))
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]
