"""fairseq-stack prepare ptb: options, dry run, bad input, and the same bytes again."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack import cli
from fairseq_stack_preprocess import mikolov, ptb
from fairseq_stack_preprocess.manifest import describe_files
from fairseq_stack_preprocess.mikolov import MikolovOptions
from fairseq_stack_preprocess.ptb import PtbOptions
from tests.preprocess.treebanks import DOG, lines_of, ptb_folder, write_files

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
    assert seen == [(PtbOptions(raw=Path("raw")), False), (MikolovOptions(raw=Path("raw")), False)]


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


def test_same_bytes_again(raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = []
    for name, here in (("a", raw), ("b", Path("raw"))):
        monkeypatch.chdir(tmp_path)
        assert prepare(tmp_path / name, "--raw", here, "--no-binarise") == 0
        outputs.append((describe_files(tmp_path / name), (tmp_path / name / "manifest.json").read_bytes()))
    assert outputs[0] == outputs[1]


def test_existing_folder_and_force(raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [tmp_path / "out", "--raw", raw, "--no-binarise"]
    assert prepare(*arguments) == 0
    assert prepare(*arguments, "--limit", "1") == 2
    assert "exists already; give --force to replace it" in capsys.readouterr().err
    assert manifest_of(tmp_path / "out")["options"]["limit"] is None
    assert prepare(*arguments, "--limit", "1", "--force") == 0
    assert manifest_of(tmp_path / "out")["options"]["limit"] == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (DOG.encode() + b"( (S (NN a)\n", "wsj_0203.mrg, line 2: the tree that begins here is not closed"),
        (DOG.encode() + b"( (S (NN \xff)) )\n", "wsj_0203.mrg, line 2: no UTF-8"),
        (DOG.replace("\n", "\r\n").encode(), "wsj_0203.mrg, line 1: ends in CR LF"),
        (DOG.encode() + b"( (S (NN \0)) )\n", "wsj_0203.mrg, line 2: a NUL character"),
        ("( (S (NN a\u0085)) )\n".encode(), "wsj_0203.mrg, line 1: U+0085"),
        (b"", "wsj_0203.mrg is empty"),
        (b"\n\n", "wsj_0203.mrg, line 2: the file ends without any tree"),
    ],
    ids=["unbalanced", "utf8", "crlf", "nul", "u0085", "empty", "blank"],
)
def test_bad_input_is_one_error_and_leaves_nothing(
    content: bytes, message: str, raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (raw / "02" / "wsj_0203.mrg").write_bytes(content)
    assert prepare(tmp_path / "out", "--raw", raw, "--no-binarise") == 2
    (error,) = (line for line in capsys.readouterr().err.splitlines() if not line.startswith("ptb: "))
    assert error.startswith("fairseq-stack: error: ")
    assert message in error
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]


def test_gzip_that_ends_early(raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (raw / "02" / "wsj_0203.mrg.gz").write_bytes(gzip.compress(DOG.encode())[:30])
    assert prepare(tmp_path / "out", "--raw", raw, "--no-binarise") == 2
    assert "wsj_0203.mrg.gz, line 1: the gzip file ends early" in capsys.readouterr().err


def test_strip_cr(raw: Path, tmp_path: Path) -> None:
    (raw / "23" / "wsj_2300.mrg").write_bytes(DOG.replace("\n", "\r\n").encode())
    assert prepare(tmp_path / "out", "--raw", raw, "--no-binarise", "--strip-cr") == 0
    assert lines_of(tmp_path / "out" / "text" / "test.words") == ["The dog barked loudly ."]


def test_target_that_cannot_be_written(raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("text")
    for dry_run in ([], ["--dry-run"]):
        assert prepare(tmp_path / "file" / "out", "--raw", raw, "--no-binarise", *dry_run) == 2
        assert f"cannot write to {tmp_path / 'file'}" in capsys.readouterr().err


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
