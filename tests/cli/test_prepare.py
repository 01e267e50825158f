"""fairseq-stack prepare: the folders it writes, its mistakes, and interruption."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fairseq_stack import cli
from fairseq_stack_preprocess.cfl import reversal, string_sets
from fairseq_stack_preprocess.nested import corpus as nested_translation

SIZES = ["--train-size", "40", "--valid-size", "10", "--test-size", "10"]


def options_of(folder: Path) -> dict[str, object]:
    options: dict[str, object] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["options"]
    return options


def test_nested_translation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "out"
    arguments = ["prepare", "nested-translation", str(out), *SIZES, "--no-binarise"]
    assert cli.main([*arguments, "--depth", "2", "--test-depth", "4", "--seed", "7"]) == 0
    assert options_of(out) == {
        "depth": 2,
        "test_depth": 4,
        "train_size": 40,
        "valid_size": 10,
        "test_size": 10,
        "seed": 7,
        "binarise": False,
    }
    assert sorted(path.name for path in out.iterdir()) == ["manifest.json", "text"]
    printed = capsys.readouterr().out
    assert printed == f"text:     {out / 'text'}\nmanifest: {out / 'manifest.json'}\n"


def test_reversal_is_binarised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reversal, "binarise_language", lambda folder: (folder / "data-bin").mkdir())
    out = tmp_path / "out"
    arguments = ["prepare", "reversal", str(out), *SIZES, "--symbols", "3", "--min-length", "6"]
    assert cli.main([*arguments, "--max-length", "8", "--seed", "1"]) == 0
    assert options_of(out) == {
        "symbols": 3,
        "min_length": 6,
        "max_length": 8,
        "train_size": 40,
        "valid_size": 10,
        "test_size": 10,
        "seed": 1,
        "binarise": True,
    }
    assert (out / "data-bin").is_dir()
    assert f"fairseq:  {out / 'data-bin'}\n" in capsys.readouterr().out


def test_defaults_are_those_of_the_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    for module in (nested_translation, reversal):
        monkeypatch.setattr(module, "prepare", lambda options, folder, force: seen.append((options, force)))
        assert cli.main(["prepare", module.CORPUS, str(tmp_path / "out")]) == 0
    assert seen == [
        (nested_translation.Options(), False),
        (reversal.Options(), False),
    ]


@pytest.mark.parametrize("corpus", ["nested-translation", "reversal"])
def test_limit_is_the_size_of_larger_splits(corpus: str, tmp_path: Path) -> None:
    sizes = ["--train-size", "40", "--valid-size", "10", "--test-size", "10", "--no-binarise"]
    assert cli.main(["prepare", corpus, str(tmp_path / "limited"), *sizes, "--limit", "20"]) == 0
    assert cli.main(["prepare", corpus, str(tmp_path / "small"), *sizes, "--train-size", "20"]) == 0
    manifests = [(tmp_path / folder / "manifest.json").read_bytes() for folder in ("limited", "small")]
    assert manifests[0] == manifests[1]


@pytest.mark.parametrize("corpus", ["nested-translation", "reversal"])
def test_dry_run_tells_and_writes_nothing(corpus: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "out"
    assert cli.main(["prepare", corpus, str(out), "--seed", "7", "--limit", "20", "--dry-run"]) == 0
    printed = capsys.readouterr().out
    for line in ("options:", "  seed: 7", "  train_size: 20", f"  fairseq:  {out / 'data-bin'}"):
        assert f"{line}\n" in printed
    assert list(tmp_path.iterdir()) == []


def test_dry_run_says_what_a_run_would_refuse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["prepare", "reversal", str(tmp_path / "out"), "--no-binarise", "--dry-run"]
    (tmp_path / "out").mkdir()
    assert cli.main(arguments) == 2
    assert "out already exists; give --force to replace it\n" in capsys.readouterr().err
    assert cli.main([*arguments, "--force"]) == 0
    printed = capsys.readouterr().out
    assert f"  (in place of the present {tmp_path / 'out'})\n" in printed
    assert "fairseq:" not in printed
    (tmp_path / "out" / "thesis").write_text("text")
    assert cli.main([*arguments, "--force"]) == 2
    assert "does not hold a manifest.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nested-translation", "--depth", "-1"], "--depth must be at least 0, got -1"),
        (["nested-translation", "--train-size", "-5"], "--train-size must be at least 1, got -5"),
        (["reversal", "--min-length", "9"], "--min-length must be even"),
        (["reversal", "--limit", "0"], "--limit must be at least 1, got 0"),
        (["reversal", "--min-length", "2", "--max-length", "2"], "none of the 2 strings of length 2"),
    ],
    ids=["depth", "size", "odd", "limit", "impossible"],
)
def test_mistakes_in_options(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["prepare", *arguments, str(tmp_path / "out"), "--no-binarise"]) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if "done" not in line]
    assert len(lines) == 1
    assert lines[0].startswith("fairseq-stack: error: ")
    assert message in lines[0]
    assert list(tmp_path.iterdir()) == []


def test_failure_of_the_system_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fill_the_disk(path: Path, lines: object) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(string_sets, "write_lines", fill_the_disk)
    assert cli.main(["prepare", "reversal", str(tmp_path / "out"), *SIZES, "--no-binarise"]) == 2
    assert capsys.readouterr().err.endswith("/text/train.txt: No space left on device\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="signals as on POSIX")
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "terminated"]
)
def test_interrupted_run_leaves_nothing(number: signal.Signals, code: int, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "fairseq_stack.cli", "prepare", "nested-translation"]
    process = subprocess.Popen(
        [*command, str(tmp_path / "new" / "out"), "--train-size", "1000000"],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        # A test run in the background ignores Ctrl-C, and would have its children ignore it.
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    wait_for_folder(tmp_path / "new", process)
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in error
    assert list(tmp_path.iterdir()) == []


def wait_for_folder(parent: Path, process: subprocess.Popen[str]) -> None:
    """Wait until a temporary folder stands below ``parent``: the work has begun."""
    deadline = time.monotonic() + 60
    while not (parent.is_dir() and list(parent.iterdir())):
        assert process.poll() is None, "the command ended by itself"
        assert time.monotonic() < deadline, "the command does not begin its work"
        time.sleep(0.02)
