"""BLiMP: reading pairs, and the means over paradigms."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.blimp import Pair, Scored, accuracies, read_pairs
from fairseq_stack.evaluation.intervals import Intervals


def line(good: str, field: str = "syntax", bad: str = "bad", phenomenon: str = "x") -> str:
    """A pair as in a file of BLiMP; blanks around a sentence do not count."""
    return json.dumps(
        {"sentence_good": f" {good} ", "sentence_bad": bad, "field": field, "linguistics_term": phenomenon}
    )


def test_pairs_of_the_paradigms(tmp_path: Path) -> None:
    (tmp_path / "b.jsonl").write_text("\n".join([line("b1", "syntax/semantics"), line("b2"), line("b3")]) + "\n")
    (tmp_path / "a.jsonl").write_text(line("a1") + "\n\n")
    assert read_pairs(tmp_path, 2) == [
        Pair("a", "syntax", "x", "a1", "bad"),
        Pair("b", "syntax_semantics", "x", "b1", "bad"),
        Pair("b", "syntax", "x", "b2", "bad"),
    ]
    assert len(read_pairs(tmp_path, None)) == 4


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("{}", r"line 2 is not a pair of BLiMP: KeyError\('sentence_good'\)"),
        ("{", "line 2 is not a pair of BLiMP: JSONDecodeError"),
        ("[1]", "line 2 is not a pair of BLiMP: TypeError"),
        (line(""), "line 2: sentence_good is empty"),  # it would always be the more probable one
    ],
)
def test_mistakes(second: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"has no pairs of BLiMP, \*\.jsonl"):
        read_pairs(tmp_path, None)
    path = tmp_path / "a.jsonl"
    path.write_text(f"{line('a1')}\n{second}\n")
    with pytest.raises(UserError, match=rf"a\.jsonl, {message}"):
        read_pairs(tmp_path, None)
    with pytest.raises(UserError, match="is not a folder"):
        read_pairs(path, None)


def scored(paradigm: str, phenomenon: str, good: float, bad: float, unknown: bool = False) -> Scored:
    return Scored(Pair(paradigm, "syntax", phenomenon, "", ""), good, bad, unknown)


def test_pairs_are_drawn_within_each_paradigm() -> None:
    pairs = [*(scored("p", "x", -1, -2) for _ in range(40)), scored("q", "x", -2, -1), scored("q", "x", -2, -1)]
    accuracy = accuracies(pairs, Intervals(50, 0.9, 1))[0].accuracy
    assert (accuracy.low, accuracy.value, accuracy.high) == (0.5, 0.5, 0.5)


def test_the_mean_over_paradigms() -> None:
    """A tie counts one half, and a paradigm counts as much as another one, whatever its size."""
    pairs = [
        scored("p", "x", -1, -2),
        scored("q", "x", -2, -2, True),
        scored("q", "x", -1, -2),
        scored("q", "y", -3, -2),
    ]
    overall, fields, phenomena, paradigms = accuracies(pairs, Intervals(50, 0.9, 1))
    assert [(actual.name, actual.pairs) for actual in (overall, *fields)] == [("all", 4), ("syntax", 4)]
    assert overall.accuracy.value == pytest.approx((1 + 1.5 / 3) / 2)
    assert overall.accuracy.low <= overall.accuracy.value <= overall.accuracy.high
    assert (overall.unknown, overall.ties) == (0.25, 0.25)
    assert {actual.name: actual.ties for actual in phenomena} == pytest.approx({"x": 1 / 3, "y": 0})
    assert {actual.name: actual.accuracy.value for actual in phenomena} == pytest.approx({"x": 0.875, "y": 0})
    assert {actual.name: actual.accuracy.value for actual in paradigms} == pytest.approx({"p": 1, "q": 0.5})
