"""fairseq-stack prepare ptb: options, dry run, bad input, and the same bytes again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack import cli
from fairseq_stack_preprocess.trees import mikolov, ptb
from tests.preprocess.trees.treebanks import DOG, lines_of, ptb_folder, write_files

TEXTS = {f"ptb.{split}.txt": " the dog \n a cat \n" for split in ("train", "valid", "test")}


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return ptb_folder(tmp_path / "raw")


def prepare(*arguments: object) -> int:
    return cli.main(["prepare", "ptb", *map(str, arguments)])


def manifest_of(folder: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return manifest


def test_defaults_are_those_of_the_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    for module in (ptb, mikolov):
        monkeypatch.setattr(module, "prepare", lambda options, folder, force: seen.append((options, force)))
    assert prepare(tmp_path / "out", "--raw", "raw") == 0
    assert prepare(tmp_path / "out", "--raw", "raw", "--mikolov", "sentences") == 0
    assert seen == [(ptb.Options(raw=Path("raw")), False), (mikolov.Options(raw=Path("raw")), False)]


def test_options(raw: Path, tmp_path: Path) -> None:
    sections = ["--train-sections", "0-2", "--valid-sections", "23", "--test-sections", "24"]
    assert prepare(tmp_path / "out", "--raw", raw, *sections, "--slips", "--limit", 3, "--no-binarise") == 0
    assert manifest_of(tmp_path / "out")["options"] == {
        "train_sections": [0, 1, 2],
        "valid_sections": [23],
        "test_sections": [24],
        "slips": True,
        "limit": 3,
        "strip_cr": False,
        "binarise": False,
    }
    assert len(lines_of(tmp_path / "out" / "text" / "train.txt")) == 3


def test_mikolov(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw = write_files(tmp_path / "raw", TEXTS)
    arguments = [tmp_path / "out", "--raw", raw, "--mikolov", "stream", "--limit", "1", "--no-binarise"]
    assert prepare(*arguments, "--dry-run") == 0
    assert "train: ptb.train.txt, 18 bytes" in capsys.readouterr().out.splitlines()
    assert prepare(*arguments) == 0
    assert lines_of(tmp_path / "out" / "text" / "test.txt") == ["the dog <eos>"]
    assert manifest_of(tmp_path / "out")["options"] == {
        "mikolov": "stream",
        "limit": 1,
        "strip_cr": False,
        "binarise": False,
    }


def test_dry_run_writes_nothing(raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert prepare(tmp_path / "out", "--raw", raw, "--dry-run") == 0
    printed = capsys.readouterr().out
    size = sum(path.stat().st_size for path in (raw / "02").iterdir())
    assert f"train: 2 files, {size} bytes: 02/wsj_0201.mrg .. 02/wsj_0202.mrg\n" in printed
    assert "no file of section 03, 04," in printed
    assert "nothing is written (--dry-run)" in printed
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]


def test_dry_run_finds_mistakes(raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert prepare(tmp_path / "out", "--raw", raw, "--test-sections", "22", "--dry-run") == 2
    assert "no .mrg file of section 22 (test)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (DOG + "( (S (NN a)\n", "wsj_0203.mrg, line 2: the tree that begins here is not closed"),
        ("( (S (NN a\u00a0)) )\n", "wsj_0203.mrg, line 1: U+00A0"),
        ("\n\n", "wsj_0203.mrg, line 2: the file holds no tree"),
    ],
    ids=["unbalanced", "no-break-space", "blank"],
)
def test_broken_trees_are_one_error_and_leave_nothing(
    content: str, message: str, raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (raw / "02" / "wsj_0203.mrg").write_text(content, encoding="utf-8")
    assert prepare(tmp_path / "out", "--raw", raw, "--no-binarise") == 2
    (error,) = (line for line in capsys.readouterr().err.splitlines() if not line.startswith("ptb: "))
    assert error.startswith("fairseq-stack: error: ")
    assert message in error
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--limit", "0"], "--limit must be at least 1, got 0"),
        (["--train-sections", "2-99"], "--train-sections: expected sections from 0 to 24"),
        (["--train-sections", ""], "--train-sections: expected sections such as 2-21"),
        (["--mikolov", "stream", "--slips"], "--slips is for trees"),
        (["--mikolov", "stream", "--test-sections", "1"], "--test-sections is for trees"),
        (["--mikolov", "stream"], "there is neither ptb.train.txt nor ptb.train.txt.gz"),
    ],
    ids=["limit", "section", "no-section", "slips", "sections-of-text", "no-text"],
)
def test_mistakes_in_options(
    arguments: list[str], message: str, raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert prepare(tmp_path / "out", "--raw", raw, "--no-binarise", *arguments) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
