"""Text for language modelling: as sentences, as a stream, and in pieces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairseq_stack_preprocess.errors import PrepareError
from fairseq_stack_preprocess.lm.text_corpus import Options, prepare
from tests.preprocess.corpus_folders import lines_of, manifest_of
from tests.preprocess.trees.treebanks import write_files

TEXTS = {"train.txt": " the <unk> costs N \n\n no it was n't \n", "valid.txt.gz": " the dog \n", "test.txt": "it\n"}


def run(folder: Path, raw: Path, names: tuple[str, ...] = tuple(TEXTS), **options: Any) -> dict[str, Any]:
    train, valid, test = (raw / name for name in names)
    prepare(Options(train, valid, test, binarise=False, **options), folder)
    return manifest_of(folder)


def test_sentences(tmp_path: Path) -> None:
    manifest = run(tmp_path / "out", write_files(tmp_path / "raw", TEXTS))
    assert lines_of(tmp_path / "out" / "text" / "train.txt") == ["the <unk> costs N", "no it was n't"]
    assert lines_of(tmp_path / "out" / "text" / "valid.txt") == ["the dog"]
    counts = {"sentences": 2, "tokens": 8, "distinct_tokens": 8, "longest": 4, "unknown_tokens": 0, "unknown_rate": 0.0}
    assert manifest["splits"]["train"] == counts
    assert manifest["splits"]["valid"]["unknown_tokens"] == 1
    assert manifest["dropped"]["train"] == {"empty line": 1}
    assert list(manifest["inputs"]) == ["train/train.txt", "valid/valid.txt.gz", "test/test.txt"]


def test_stream(tmp_path: Path) -> None:
    manifest = run(tmp_path / "out", write_files(tmp_path / "raw", TEXTS), stream=True)
    (line,) = lines_of(tmp_path / "out" / "text" / "train.txt")
    assert line == "the <unk> costs N <eos> no it was n't <eos>"
    assert manifest["splits"]["train"]["sentences"] == 2


def test_pieces(tmp_path: Path) -> None:
    texts = {"train.txt": "Low\u00a0lower.\n\nlowest\n" * 9, "valid.txt.gz": "lower low\n", "test.txt": "löw </s>\n"}
    raw, out, again = write_files(tmp_path / "raw", texts), tmp_path / "out", tmp_path / "again"
    manifest = run(out, raw, pieces=20, limit=4)
    assert "".join(lines_of(out / "text" / "train.txt")).replace(" ", "").count("▁") == 6
    assert lines_of(out / "text" / "valid.txt")[0].replace(" ", "") == "▁lower▁low"
    assert len(lines_of(out / "text" / "vocabulary.txt")) <= 19
    assert manifest["dropped"]["train"] == {"empty line": 2}
    assert manifest["splits"]["train"]["unknown_tokens"] == 0 < manifest["splits"]["test"]["unknown_tokens"]
    run(again, raw, piece_model=out / "spm.model", limit=4)
    for name in ("spm.model", "text/train.txt", "text/test.txt", "text/vocabulary.txt"):
        assert (out / name).read_bytes() == (again / name).read_bytes()


def test_real_text(reference_data: Path, tmp_path: Path) -> None:
    """The figures of the literature: 929,589 / 73,760 / 82,430 tokens with the ends of sentences, 10,000 types."""
    names = tuple(f"ptb.{split}.txt.gz" for split in ("train", "valid", "test"))
    manifest = run(tmp_path / "out", reference_data / "data" / "ptb" / "mikolov", names, stream=True)
    splits = manifest["splits"]
    assert {
        split: (counts["sentences"], counts["tokens"] + counts["sentences"]) for split, counts in splits.items()
    } == {
        "train": (42_068, 929_589),
        "valid": (3_370, 73_760),
        "test": (3_761, 82_430),
    }
    assert splits["train"]["distinct_tokens"] == 9_999
    (stream,) = lines_of(tmp_path / "out" / "text" / "valid.txt")
    assert len(stream.split(" ")) == 73_760
    assert stream.count("<eos>") == 3_370


@pytest.mark.parametrize(
    ("files", "options", "message"),
    [
        ({"train.txt": "a\nb <eos>\n"}, {"stream": True}, r"train\.txt, line 2: holds <eos>"),
        ({"train.txt": "a\nb </s>\n"}, {}, r"train\.txt, line 2: fairseq reserves the symbol </s>"),
        ({"test.txt": " \n"}, {}, r"test\.txt, line 1: the file holds no sentence"),
        ({}, {"pieces": 9, "stream": True}, "--stream is for words"),
        ({"train.txt": "a b\n", "test.txt": "a\n\u2581\n"}, {"pieces": 40}, r"test\.txt, line 2: holds U\+2581"),
        ({}, {"pieces": 40}, r"train\.txt, line 1: holds <unk>, which SentencePiece"),
    ],
    ids=["eos", "special", "empty", "stream of pieces", "mark of pieces", "unknown word"],
)
def test_mistakes(files: dict[str, str], options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(PrepareError, match=message):
        run(tmp_path / "out", write_files(tmp_path / "raw", TEXTS | files), **options)
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]
