"""The command fairseq-stack: help, version, user-dir, and mistakes in one line."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import IO
from unittest.mock import Mock

import pytest

import fairseq_stack
from fairseq_stack import cli
from tests.evaluation.cfl_results import cfl_result

PACKAGE = Path(fairseq_stack.__file__).absolute().parent


@pytest.mark.parametrize(
    "command",
    [
        "evaluate-cfl m --data d --json",
        "evaluate-cfl m --data d --csv",
        "inspect m --text a --output",
        "average m --output",
        "plot training m --output",
        "plot table a=m --output",
    ],
)
def test_what_cannot_be_written_is_said_at_once(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before a model, data or results are read, none of which are here."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m").touch()
    output = "x" * 250 + (".md" if "table" in command else ".svg")
    assert cli.main([*command.split(), output]) == 2
    assert capsys.readouterr().err == f"fairseq-stack: error: cannot write {output}: File name too long\n"
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--json a --csv ./a", "--json and --csv are the same file, a; expected two"),
        ("--samples -1", "--samples must be at least 0, got -1"),
        ("--bootstrap 0", "--bootstrap must be at least 1, got 0"),
        ("--seed 1000001", "--seed must be at most 1000000, got 1000001"),
        ("--confidence nan", "--confidence must be greater than 0 and less than 1, got nan"),
    ],
)
def test_options_of_evaluations(options: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["evaluate-cfl", "m", "--data", "d", *options.split()]) == 2
    assert capsys.readouterr().err == f"fairseq-stack: error: {message}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["prepair"], "fairseq-stack: error: argument SUBCOMMAND: invalid choice: 'prepair'"),
        (
            ["prepare", "nested-translation", "out", "--train", "5"],
            "error: unrecognized arguments: --train 5 (see fair",
        ),
    ],
    ids=["typo", "abbreviation"],
)
def test_mistakes_on_the_command_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def run_module(
    *arguments: str, folder: Path, stdout: IO[bytes] | int = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, in ``folder``."""
    # Output that is not buffered would be lost where argparse writes it, and not again when Python ends.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUNBUFFERED": ""}
    command = [sys.executable, "-m", "fairseq_stack.cli", *arguments]
    return subprocess.run(
        command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False, env=environment, cwd=folder
    )


def test_module_can_be_run(tmp_path: Path) -> None:
    result = run_module("user-dir", folder=tmp_path)
    assert (result.returncode, result.stdout, result.stderr) == (0, f"{PACKAGE}\n", "")


@pytest.mark.skipif(os.name != "posix", reason="pipes as on POSIX")
@pytest.mark.parametrize(
    "arguments", [["--help"], ["plot", "table", *(f"{number}=a.json" for number in range(500))]], ids=["short", "long"]
)
def test_reader_that_closes_the_pipe_ends_the_command_quietly(arguments: list[str], tmp_path: Path) -> None:
    """The long output is more than a buffer holds, so that printing fails, and not the end of the command."""
    cfl_result().write(tmp_path / "a.json")
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as pipe:
        result = run_module(*arguments, folder=tmp_path, stdout=pipe)
    assert (result.returncode, result.stderr) == (141, "")


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is Linux's")
def test_standard_output_that_cannot_be_written(tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        result = run_module("user-dir", folder=tmp_path, stdout=full)
    assert result.returncode == 2
    assert result.stderr == "fairseq-stack: error: cannot write to standard output: No space left on device\n"


def test_an_error_is_one_line_whatever_the_name_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["evaluate-cfl", "m", "--data", str(tmp_path / "a\nb\udcff")]) == 2
    assert capsys.readouterr().err == f"fairseq-stack: error: {tmp_path}/a\\nb\\udcff is not a folder\n"


def test_too_little_memory(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """PyTorch's own error is a RuntimeError; others are not hidden."""
    from fairseq_stack.cli import doctor

    for message, is_one in (("DefaultCPUAllocator: can't allocate memory: you tried", True), ("a mistake", False)):
        monkeypatch.setattr(doctor, "run", Mock(side_effect=RuntimeError(message)))
        with contextlib.nullcontext() if is_one else pytest.raises(RuntimeError, match=message):
            assert cli.main(["doctor"]) == 2
    assert capsys.readouterr().err.startswith("fairseq-stack: error: this machine does not have enough memory")


def test_damaged_data(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """fairseq's own errors are told as in its commands; others are not hidden."""
    from fairseq_stack.cli import doctor

    for message, is_known in (("buffer is smaller than requested size", True), ("a mistake", False)):
        monkeypatch.setattr(doctor, "run", Mock(side_effect=ValueError(message)))
        with contextlib.nullcontext() if is_known else pytest.raises(ValueError, match=message):
            assert cli.main(["doctor"]) == 2
    assert capsys.readouterr().err == (
        "fairseq-stack: error: a file of the binarised data (.idx or .bin) ends early: binarise the data again\n"
    )
