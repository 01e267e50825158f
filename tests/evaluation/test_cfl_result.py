"""The JSON of a result: written whole, and read back equal."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.cfl_result import CFLResult, LengthScores, Samples, StringScores
from fairseq_stack.evaluation.results import Estimate, Model, write_rows

OVERALL = StringScores(3, 33, 1.5, 1.25, Estimate(0.25, 0.125, 0.5))
RESULT = CFLResult(
    signature="language:dyck|version:x",
    language="dyck",
    split="test",
    eos=True,
    train_lengths=(4, 8),
    model=Model("ä/checkpoint_best.pt", "stack_transformer_lm", 12),
    overall=OVERALL,
    by_length=(LengthScores(**vars(OVERALL), length=10),),
    samples=Samples(strings=8, in_language=2, unfinished=1, max_length=12),
)


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    for result in (RESULT, dataclasses.replace(RESULT, samples=None, by_length=())):
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
        dataclasses.replace(RESULT, overall=dataclasses.replace(OVERALL, bound=float("nan"))).write(path)
    assert not path.exists()


def test_other_entries(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    RESULT.write(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(content | {"more": 1}))
    assert CFLResult.read(path) == RESULT
    del content["overall"]["bound"]
    path.write_text(json.dumps(content))
    with pytest.raises(UserError, match=r"result\.json is not a result of .* evaluate-cfl: KeyError\('bound'\)"):
        CFLResult.read(path)
    path.write_text(json.dumps({**content, "train_lengths": ["40", 80]}))
    with pytest.raises(UserError, match="expected int, found '40'"):
        CFLResult.read(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a result of this version of fairseq-stack evaluate-cfl: JSONDecodeError"),
        (b"[1]", "is not a result"),
        (b'{"kind": "report"}', "is not a result of fairseq-stack evaluate-cfl$"),
        (b"\xff", "is not UTF-8"),
        (b"1" * 5000, "is not a result of .*: ValueError"),
    ],
    ids=["empty", "list", "kind", "bytes", "long"],
)
def test_other_files(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(content)
    with pytest.raises(UserError, match=f"f {message}"):
        CFLResult.read(path)
