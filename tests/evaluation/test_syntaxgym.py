"""SyntaxGym's suites: formulas, files and scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.formulas import parse
from fairseq_stack.evaluation.syntaxgym import (
    CATEGORIES,
    Item,
    Suite,
    SuiteScore,
    read_suite,
    read_suites,
    score_categories,
    score_suite,
    sentences_of,
    total,
)
from tests.helpers import each_golden_file

VALUES = {"a": {1: 1.0, 2: 2.0, 10: 4.0}, "b-c": {1: 3.0, 2: 2.0}}


@pytest.mark.parametrize(
    ("formula", "holds"),
    [
        ("(2;%a%)<(1;%a%)", False),
        ("(2;%a%) = (2;%b-c%)", True),
        ("[(1;%a%) + (1;%b-c%)] = (10;%a%)", True),
        ("(10;%a%) - (2;%a%) - (1;%a%) = 1", True),
        ("(1;%a%) = 1.0009", True),
        ("(10;%a%) - [(2;%a%) - (1;%a%)] > 2.5", True),
        ("(1;%a%) > 2 | (1;%a%) < 2 & (2;%a%) < 2", False),
        ("[(1;%a%) < 2 | (1;%a%) > 2] & ((2;%a%) > 1)", True),
        ("[ [(1;%a%)<(2;%a%)] ] & (10;%a%)>0", True),
        ("(*;%a%) = 7 & (*;%b-c%) - (1;%b-c%) = 2", True),
    ],
)
def test_formulas(formula: str, holds: bool) -> None:
    assert parse(formula).holds(VALUES) is holds


@pytest.mark.parametrize(
    "text",
    [
        "", "(1;%a%) <", "(1;%a%) < (2;%a%", "[(1;%a%) < 2", "(1;%a%) < 2)", "(1;%a%) < 2 < 3", "(1;%a%) * 2 > 1",
        "(1;%a%) & (2;%a%) < 2", "[(1;%a%) < 2] + 1 > 0", "[(1;%a%) < 2] = [(2;%a%) < 2]", "(1;%a%) + 2",
        "-(1;%a%) < 2", "[" * 10**5, "\0", "(1;%a%) < a", "__import__('os')", "(1;%a%) < 2 | f(1) < 2",
    ],
)  # fmt: skip
def test_not_a_formula(text: str) -> None:
    with pytest.raises(ValueError, match="expected a formula"):
        parse(text)


@each_golden_file("pushdown/syntaxgym_formulas.json")
def test_golden_formulas(path: Path) -> None:
    """All cases, and the scores of suites, categories and all, as outside code computes them."""
    golden = json.loads(path.read_text())
    scores = []
    for suite in golden["suites"]:
        formula = parse(suite["formula"])
        items = [
            {name: dict(enumerate(values, start=1)) for name, values in case["surprisals"].items()}
            for case in suite["cases"]
        ]
        for item, case in zip(items, suite["cases"], strict=True):
            assert formula.holds(item) is case["result"], suite["suite"]
        category = next(name for name, suites in CATEGORIES.items() if suite["suite"] in suites)
        assert category == suite["category"]
        read = Suite(suite["suite"], category, "sum", {}, (formula,), tuple(Item(n, {}) for n in range(len(items))))
        scores.append(score_suite(read, items, 0.0))
    assert {score.name: score.accuracy for score in scores} == golden["suite_accuracy"]
    categories = {score.name: score.accuracy for score in score_categories(scores)}
    assert categories == pytest.approx(golden["category_accuracy"], abs=1e-12)
    assert total(scores) == pytest.approx(golden["mean_over_suites"], abs=1e-12)
    assert sum(map(len, CATEGORIES.values())) == 33


def item_of(number: float, **conditions: list[str]) -> dict[str, Any]:
    """An item, with the texts of the regions of each condition."""
    return {
        "item_number": number,
        "conditions": [
            {
                "condition_name": name,
                "regions": [{"region_number": n, "content": text} for n, text in enumerate(texts, start=1)],
            }
            for name, texts in conditions.items()
        ],
    }


def suite_file(path: Path, **changes: Any) -> Path:
    content = {
        "meta": {"name": "cleft"},
        "region_meta": {"1": "det", "2": "noun"},
        "predictions": [{"type": "formula", "formula": "(2;%a%) < (2;%b%)"}, {"formula": "(1;%a%) = (1;%b%)"}],
        "items": [item_of(7, a=["The", " cat "], b=["The", " cat "])],
    }
    path.write_text(json.dumps(content | changes))
    return path


def test_a_suite(tmp_path: Path) -> None:
    suite = read_suite(suite_file(tmp_path / "cleft.json"))
    assert (suite.name, suite.category, suite.metric) == ("cleft", "long-distance dependencies", "sum")
    assert suite.region_names == {1: "det", 2: "noun"}
    assert suite.items == (Item(7, {"a": {1: "The", 2: " cat "}, "b": {1: "The", 2: " cat "}}),)
    score = score_suite(suite, [{"a": {1: 1.0, 2: 2.0}, "b": {1: 1.0, 2: 3.0}}], 0.25)
    assert (score.accuracy, [prediction.accuracy for prediction in score.predictions]) == (1, [1, 1])
    assert [(region.condition, region.number, region.name, region.surprisal) for region in score.regions] == [
        ("a", 1, "det", 1.0), ("a", 2, "noun", 2.0), ("b", 1, "det", 1.0), ("b", 2, "noun", 3.0),
    ]  # fmt: skip


def test_empty_regions_are_left_out() -> None:
    item = Item(1, {"a": {2: " slept", 1: "The cat", 3: ""}, "b": {0: "It", 2: "slept ."}})
    assert sentences_of(item) == {
        "a": [(1, "The cat"), (2, "slept")],
        "b": [(0, "It"), (2, "slept .")],
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"predictions": [{"formula": "(3;%a%) < (2;%b%)"}]},
            ", item 7: region 3 of the condition a, of a formula, is missing",
        ),
        ({"predictions": [{"formula": "(1;%a%)"}]}, " is not a test suite of SyntaxGym: ValueError("),
        ({"meta": {"name": 5}}, " is not a test suite of SyntaxGym: TypeError('expected a text, got 5"),
        ({"items": [item_of(1.5)]}, " is not a test suite of SyntaxGym: TypeError('expected a whole number, got 1.5"),
        (
            {"items": [item_of(1, a=["The", "cat"], b=["The", "dog"])] * 2},
            " is not a test suite of SyntaxGym: ValueError('expected different items, conditions and regions, got 1 tw",
        ),
        ({"items": [{"item_number": 1}]}, " is not a test suite of SyntaxGym: KeyError('conditions')"),
        ({"predictions": []}, " is not a test suite of SyntaxGym: ValueError('expected at least one prediction"),
        ({"region_meta": []}, " is not a test suite of SyntaxGym: AttributeError("),
        ({"meta": {"name": "x", "metric": "max"}}, ' is not a test suite of SyntaxGym: ValueError("the metric must be'),
    ],
)
def test_mistakes_in_suites(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        read_suites(suite_file(tmp_path / "x.json", **changes).parent)
    assert str(caught.value).startswith(f"{tmp_path / 'x.json'}{message}")


def test_folders_without_suites(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"has no test suites, \*\.json"):
        read_suites(tmp_path)
    (tmp_path / "x.json").write_text("{")
    for folder, message in ((tmp_path, "is not a test suite of SyntaxGym"), (tmp_path / "x.json", "is not a folder")):
        with pytest.raises(UserError, match=message):
            read_suites(folder)


def test_suites_without_a_category_do_not_count() -> None:
    score = SuiteScore("mine", None, 1, 0.0, 1.0, (), ())
    assert (score_categories([score]), total([score])) == ((), None)
