"""fairseq-stack prepare treebank: options, dry run, and fairseq's data beside the side files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairseq_stack import cli
from fairseq_stack_preprocess.text.manifest import describe_files
from fairseq_stack_preprocess.trees import treebank
from fairseq_stack_preprocess.trees.treebank import Options
from tests.preprocess.trees.treebanks import CAT, DASH, DOG, lines_of, write_files

FILES = {"train.mrg": CAT + DOG + CAT, "valid.mrg": DOG, "test.mrg": DASH}


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    """The options that name the input."""
    raw = write_files(tmp_path / "raw", FILES)
    return [word for name in FILES for word in (f"--{name.removesuffix('.mrg')}", str(raw / name))]


def prepare(*arguments: object) -> int:
    return cli.main(["prepare", "treebank", *map(str, arguments)])


def test_defaults_are_those_of_the_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(treebank, "prepare", lambda options, folder, force: seen.append((options, force)))
    assert prepare(tmp_path / "out", "--train", "a", "b", "--valid", "c", "--test", "d") == 0
    assert seen == [(Options(train=(Path("a"), Path("b")), valid=(Path("c"),), test=(Path("d"),)), False)]


def test_options(tmp_path: Path, paths: list[str]) -> None:
    assert prepare(tmp_path / "out", *paths, "--rare-words", "keep", "--limit", 2, "--strip-cr", "--no-binarise") == 0
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["options"] == {
        "rare_words": "keep",
        "pieces": None,
        "limit": 2,
        "strip_cr": True,
        "binarise": False,
    }
    assert manifest["splits"]["train"]["sentences"] == 2


def test_fairseq_reads_as_many_tokens_as_there_are_attachments_and_again_the_same_bytes(
    tmp_path: Path, paths: list[str]
) -> None:
    from fairseq.data import Dictionary, data_utils

    for name in ("a", "b"):
        assert prepare(tmp_path / name, *paths, "--pieces", 40) == 0
    assert describe_files(tmp_path / "a") == describe_files(tmp_path / "b")
    assert (tmp_path / "a" / "manifest.json").read_bytes() == (tmp_path / "b" / "manifest.json").read_bytes()
    data, text = tmp_path / "a" / "data-bin", tmp_path / "a" / "text"
    dictionary = Dictionary.load(str(data / "dict.txt"))
    assert lines_of(data / "dict.txt") == lines_of(text / "vocabulary.txt")
    for split in ("train", "valid", "test"):
        sentences = data_utils.load_indexed_dataset(str(data / split), dictionary)
        attachments = [line.split(" ") for line in lines_of(text / f"{split}.attach")]
        assert [len(sentence) for sentence in sentences] == [len(line) + 1 for line in attachments]
        if split == "train":
            assert [dictionary.string(sentence) for sentence in sentences] == lines_of(text / "train.txt")


def test_dry_run_writes_nothing(tmp_path: Path, paths: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert prepare(tmp_path / "out", *paths, "--dry-run") == 0
    assert f"valid: 1 file, {len(DOG)} bytes: valid/valid.mrg\n" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pieces", "1"], "--pieces must be at least 2, got 1"),
        (["--pieces", "9", "--rare-words", "keep"], "--rare-words is for words"),
        (["--piece-model", "nowhere"], "error: nowhere: No such file or directory"),
        (["--limit", "-1"], "--limit must be at least 1, got -1"),
    ],
    ids=["pieces", "both", "no-model", "limit"],
)
@pytest.mark.parametrize("dry_run", [[], ["--dry-run"]], ids=["run", "dry-run"])
def test_mistakes_in_options(
    arguments: list[str],
    message: str,
    dry_run: list[str],
    tmp_path: Path,
    paths: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert prepare(tmp_path / "out", *paths, *arguments, *dry_run, "--no-binarise") == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_broken_tree_is_one_error_and_leaves_nothing(
    tmp_path: Path, paths: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "raw" / "valid.mrg").write_text(DOG + "(S (NN a)))\n")
    assert prepare(tmp_path / "out", *paths, "--no-binarise") == 2
    (error,) = (line for line in capsys.readouterr().err.splitlines() if not line.startswith("treebank: "))
    place = f"{tmp_path / 'raw' / 'valid.mrg'}, line 2"
    assert error == f"fairseq-stack: error: {place}: a closing bracket without an opening bracket"
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]
