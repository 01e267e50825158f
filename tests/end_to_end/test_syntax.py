"""evaluate-blimp and evaluate-syntaxgym, on a model of strings of letters, against the scores of the hub."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack import cli
from fairseq_stack.evaluation.blimp import BLiMPResult
from fairseq_stack.evaluation.syntaxgym import SyntaxGymResult
from fairseq_stack.hub.interface import LanguageModelHub
from fairseq_stack.hub.surprisals import Word, surprisals
from tests.end_to_end.fairseq_commands import hub_of, rows_of
from tests.evaluation.test_blimp import line
from tests.evaluation.test_syntaxgym import item_of, suite_file

PAIRS = [("A b.", "B b."), ("c c", "c zebra"), ("d, a?", "d a b"), ("a lion", "a zebra")]


@pytest.fixture
def hub(language_model: Path) -> LanguageModelHub:
    return hub_of(language_model)


@pytest.mark.parametrize("end", ["yes", "no"])
def test_blimp(
    end: str, language_model: Path, hub: LanguageModelHub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def log_probability(text: str) -> float:
        scores = hub.score(text)["positional_scores"].double()
        return float(scores[: len(scores) - (end == "no")].sum())

    for name, pairs in (("first", PAIRS[:1]), ("second", PAIRS[1:])):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(line(good, bad=bad) for good, bad in pairs))
    options = ["--blimp", str(tmp_path), "--penn", "--lowercase", "--without-punctuation", "--bootstrap", "20"]
    options += ["--without-end"] if end == "no" else []
    outputs = ["--json", str(tmp_path / "out"), "--csv", str(tmp_path / "pairs.csv")]
    assert cli.main(["evaluate-blimp", str(language_model), *options, *outputs]) == 0
    result = BLiMPResult.read(tmp_path / "out")
    seen = [("a b", "b b"), ("c c", "c zebra"), ("d a", "d a b")]
    right = [log_probability(good) > log_probability(bad) for good, bad in seen]
    assert result.overall.accuracy.value == pytest.approx((right[0] + (right[1] + right[2] + 1 / 2) / 3) / 2)
    assert [(each.name, each.pairs, each.unknown, each.ties) for each in result.paradigms] == [
        ("first", 1, 0.0, 0.0), ("second", 3, 2 / 3, 1 / 3),
    ]  # fmt: skip
    rows = rows_of(tmp_path / "pairs.csv")
    assert [(row["good"], row["bad"]) for row in rows] == PAIRS
    assert [row["tie"] for row in rows] == ["0", "0", "0", "1"]
    measured = [float(row[f"log_p_{name}"]) for row in rows[:3] for name in ("good", "bad")]
    assert measured == pytest.approx([log_probability(text) for pair in seen for text in pair], abs=1e-4)
    printed = capsys.readouterr().out
    assert printed.endswith(f"\n{result.signature}\n")
    assert f"|text:penn+lowercase+without-punctuation|end:{end}|" in result.signature


@pytest.fixture
def rounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Surprisals that are rounded differently in each sentence."""

    def rounded(*arguments: Any, **options: Any) -> Iterator[list[Word]]:
        for number, words in enumerate(surprisals(*arguments, **options)):
            yield [replace(word, surprisal=word.surprisal + 1e-6 * number) for word in words]

    monkeypatch.setattr("fairseq_stack.hub.surprisals.surprisals", rounded)


@pytest.mark.usefixtures("rounded")
def test_equal_tokens_are_a_tie_whatever_rounding_does(language_model: Path, tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text("\n".join([line("a lion", bad="a zebra"), line("a b", bad="b a")]))
    assert (
        cli.main(["evaluate-blimp", str(language_model), "--blimp", str(tmp_path), "--json", str(tmp_path / "out")])
        == 0
    )
    assert BLiMPResult.read(tmp_path / "out").overall.ties == 0.5


def test_syntaxgym(
    language_model: Path, hub: LanguageModelHub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite: dict[str, Any] = {
        "region_meta": {"1": "first", "2": "second", "3": "third"},
        "predictions": [{"formula": "(2;%x%) > (3;%y%)"}, {"formula": "(3;%x%) = (2;%y%)"}],
        "items": [item_of(1, x=["A", "b c", ""], y=["A zebra", "", "b c"])],
    }
    folder = tmp_path / "suites"
    folder.mkdir()
    suite_file(folder / "cleft.json", **suite)
    outputs = ["--json", str(tmp_path / "out"), "--csv", str(tmp_path / "items.csv")]
    options = ["--suites", str(folder), "--lowercase", *outputs]
    assert cli.main(["evaluate-syntaxgym", str(language_model), *options]) == 0
    result = SyntaxGymResult.read(tmp_path / "out")
    (cleft,) = result.suites
    scores = {name: hub.score(text)["positional_scores"] for name, text in (("x", "a b c"), ("y", "a zebra b c"))}
    bits = {name: [-float(score) / math.log(2) for score in values] for name, values in scores.items()}
    expected = {
        ("x", 1): bits["x"][0], ("x", 2): sum(bits["x"][1:3]), ("x", 3): 0.0,
        ("y", 1): sum(bits["y"][:2]), ("y", 2): 0.0, ("y", 3): sum(bits["y"][2:4]),
    }  # fmt: skip
    measured = {(region.condition, region.number): region.surprisal for region in cleft.regions}
    assert measured == pytest.approx(expected, abs=1e-5)
    assert cleft.accuracy == (expected["x", 2] > expected["y", 3])
    assert [prediction.accuracy for prediction in cleft.predictions] == [cleft.accuracy, 1.0]
    rows = rows_of(tmp_path / "items.csv")
    assert [(row["suite"], row["item"], row["prediction"]) for row in rows] == [
        ("cleft", "1", "1"),
        ("cleft", "1", "2"),
    ]
    assert [float(row["holds"]) for row in rows] == [cleft.accuracy, 1.0]
    assert (cleft.unknown, result.accuracy) == (0.5, cleft.accuracy)
    assert capsys.readouterr().out.endswith(f"\n{result.signature}\n")
    assert result.signature.startswith("suites:1|sha:a097f55e|text:lowercase|version:fairseq_stack-")
    suite_file(folder / "cleft.json", meta={"name": "cleft", "metric": "mean"}, **suite)
    assert cli.main(["evaluate-syntaxgym", str(language_model), *options]) == 0
    result = SyntaxGymResult.read(tmp_path / "out")
    regions = {(region.condition, region.number): region.surprisal for region in result.suites[0].regions}
    of_two_tokens = {("x", 2), ("y", 1), ("y", 3)}
    assert regions == pytest.approx({key: expected[key] / (1 + (key in of_two_tokens)) for key in expected}, abs=1e-5)
    assert "|sha:a097f55e|" not in result.signature


@pytest.mark.usefixtures("rounded")
def test_surprisals_after_equal_tokens_are_equal(language_model: Path, tmp_path: Path) -> None:
    """Both regions 2 are an unknown word after the same word; the other word after it differs."""
    predictions = [{"formula": f"({region};%a%) {sign} ({region};%b%)"} for region in (2, 3) for sign in "<>"]
    items = [item_of(1, a=["a", "lion", "b"], b=["a", "zebra", "c"])]
    suite_file(tmp_path / "x.json", predictions=predictions, items=items)
    out = tmp_path / "out"
    assert cli.main(["evaluate-syntaxgym", str(language_model), "--suites", str(tmp_path), "--json", str(out)]) == 0
    (suite,) = SyntaxGymResult.read(out).suites
    accuracies = [prediction.accuracy for prediction in suite.predictions]
    assert accuracies[:2] == [0, 0] and sum(accuracies[2:]) == 1


def test_nothing_is_left_of_a_sentence(
    language_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.jsonl").write_text(line("?!"))
    options = ["--blimp", str(tmp_path), "--without-punctuation"]
    assert cli.main(["evaluate-blimp", str(language_model), *options]) == 2
    assert capsys.readouterr().err.endswith("error: p: the text options leave nothing of the sentence '?!'\n")
    suite_file(tmp_path / "x.json", items=[item_of(1, a=["?", "!"], b=["a", "b"])])
    options = ["--suites", str(tmp_path), "--without-punctuation"]
    assert cli.main(["evaluate-syntaxgym", str(language_model), *options]) == 2
    assert capsys.readouterr().err.endswith("error: cleft, item 1, a: expected words, got none\n")
