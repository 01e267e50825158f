"""The JSON of a result: written whole, read back equal, and refused with the name of the entry that is wrong."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.cfl_result import CFLResult, LengthScores, NextSymbol, Samples, StringScores
from fairseq_stack.evaluation.results import Estimate, Model, write_rows

OVERALL = StringScores(3, 33, 1.5, 1.25, Estimate(0.25, 0.125, 0.5), NextSymbol(4, 3))
RESULT = CFLResult(
    signature="language:dyck|version:x",
    language="dyck",
    split="test",
    eos=True,
    train_lengths=(4, 8),
    bootstrap=10,
    confidence=0.5,
    model=Model("ä/checkpoint_best.pt", "stack_transformer_lm", 12),
    overall=OVERALL,
    by_length=(LengthScores(**vars(OVERALL), length=10),),
    samples=Samples(strings=8, in_language=2, unfinished=1, max_length=12),
)


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    without_positions = dataclasses.replace(OVERALL, next_symbol=None)
    for result in (RESULT, dataclasses.replace(RESULT, samples=None, by_length=(), overall=without_positions)):
        result.write(path)
        assert CFLResult.read(path) == result
        assert "ä/checkpoint_best.pt" in path.read_text(encoding="utf-8")


def test_rows(tmp_path: Path) -> None:
    """Names are in the first line; what has commas or quotes in it is quoted."""
    write_rows(tmp_path / "a.csv", [{"a": 'ä, "b"', "b": True}, {"a": None, "b": 0.1}])
    assert (tmp_path / "a.csv").read_bytes().decode() == 'a,b\n"ä, ""b""",1\n,0.1\n'


def test_numbers_that_json_does_not_have_are_not_written(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    with pytest.raises(ValueError, match="not JSON compliant"):
        dataclasses.replace(RESULT, confidence=float("nan")).write(path)
    assert not path.exists()


MISSING = object()


def changed(entry: str, value: object, folder: Path) -> Path:
    """A result of which an entry, such as ``by_length.0.length``, is changed or missing."""
    path = folder / "result.json"
    RESULT.write(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    *parents, name = entry.split(".")
    record = content
    for parent in parents:
        record = record[int(parent) if parent.isdigit() else parent]
    record.pop(name, None)
    if value is not MISSING:
        record[name] = value
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("entry", "value", "message"),
    [
        ("kind", "report", "is not a result of fairseq-stack evaluate-cfl$"),
        ("overall.bound", MISSING, r"overall\.bound is missing"),
        ("model.more", 1, r"model\.more is unknown"),
        ("language", 3, "language must be a string, got 3"),
        ("eos", 1, "eos must be true or false, got 1"),
        ("bootstrap", True, "bootstrap must be an integer, got true"),
        ("bootstrap", 10**400, "bootstrap must be a number of at most 9007199254740992, got 1000"),
        ("confidence", "x", 'confidence must be a number, got "x"'),
        ("samples.strings", 0, r"samples\.strings must be at least 1, got 0"),
        ("train_lengths", [1], "train_lengths must have 2 items, got 1"),
        ("model", [], r"model must be an object, got \[\]"),
        ("by_length.0.length", None, r"by_length\[0\]\.length must be an integer"),
        ("by_length", {}, "by_length must be an array, got {}"),
    ],
)
def test_a_wrong_entry_is_named(entry: str, value: object, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"result\.json .*{message}"):
        CFLResult.read(changed(entry, value, tmp_path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not JSON"),
        (b"[1]", "is not a result"),
        (b"[" * 100_000, "is not JSON"),
        (b"\xff", "is not UTF-8"),
        (b"1" * 5000, "is not JSON"),
    ],
    ids=["empty", "list", "deep", "bytes", "long"],
)
def test_other_files(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(content)
    with pytest.raises(UserError, match=f"f {message}"):
        CFLResult.read(path)
