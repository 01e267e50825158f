"""Results on formal languages side by side."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.cfl_comparison import (
    Comparison,
    Labelled,
    compare,
    difference_by_length,
    price_of_length,
)
from fairseq_stack.evaluation.cfl_result import CFLResult
from fairseq_stack.evaluation.results import Estimate
from tests.evaluation.cfl_results import cfl_result, estimate


def labelled(model: str, result: CFLResult, number: int = 1) -> Labelled:
    return Labelled(model, f"{model}-{result.split}-{number}.json", result)


def restarts(model: str, differences: dict[str, tuple[float, float]], **others: Any) -> list[Labelled]:
    """Results on test and valid: ``differences`` has the two by the name of the checkpoint."""
    return [
        labelled(model, cfl_result(difference, split=split, checkpoint=checkpoint, **others), number)
        for place, split in enumerate(("test", "valid"))
        for number, (checkpoint, both) in enumerate(differences.items())
        for difference in [both[place]]
    ]


def values(comparison: Comparison) -> dict[str, dict[str, list[float]]]:
    return {
        language: {model: [one.result.overall.difference.value for one in runs] for model, runs in models.items()}
        for language, models in comparison.groups.items()
    }


RESTARTS = restarts("Tf", {"a": (1, 1), "b": (2, 2)})


@pytest.mark.parametrize(
    ("results", "message"),
    [
        (RESTARTS[:2], r"^Tf has 2 results on dyck, but 0 on validation data, .* or --mean$"),
        ([*RESTARTS[:2], *RESTARTS[:1:-1]], r"^Tf-test-0\.json is of a, but Tf-valid-1\.json, .* is of b"),
        (
            [labelled("Tf", cfl_result(split=split)) for split in ("test", "valid", "test1")],
            r"^the results are on the splits test, test1; give results on one of them$",
        ),
        (
            [labelled("Tf", cfl_result()), labelled("Tf", cfl_result(language="ww", split="valid"))],
            r"^Tf-valid-1\.json: expected the result of Tf on ww test, which is missing$",
        ),
    ],
    ids=["no-validation", "order", "splits", "missing"],
)
def test_mistakes(results: list[Labelled], message: str) -> None:
    with pytest.raises(UserError, match=message):
        compare(results, mean=False)


def test_strings_of_other_lengths_on_validation_data() -> None:
    """Their lengths are drawn, so they may differ in a table, but not where lengths are drawn side by side."""
    results = [
        labelled("Tf", cfl_result(0.5, split="valid")),
        labelled("Tf+Nd", cfl_result(0.25, split="valid", by_length={40: 1.0})),
    ]
    assert values(compare(results, mean=False)) == {"dyck": {"Tf": [0.5], "Tf+Nd": [0.25]}}
    with pytest.raises(UserError, match="lengths are 40, 42, 44 in the one and 40 in the other"):
        compare(results, mean=False, by_length=True)


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        ({"eos": False}, "the ends of strings are counted in the one and not counted in the other"),
        ({"train_lengths": (40, 80)}, "training lengths are 40 to 42 in the one and 40 to 80 in the other"),
        ({"by_length": {40: 1.0}}, "lengths are 40, 42, 44 in the one and 40 in the other"),
        ({"by_length": {}}, "lengths are 40, 42, 44 in the one and none in the other"),
    ],
    ids=["eos", "train-lengths", "lengths", "no-lengths"],
)
def test_results_that_cannot_be_compared(other: dict[str, Any], difference: str) -> None:
    results = [labelled("Tf", cfl_result()), labelled("Tf+Nd", cfl_result(**other))]
    with pytest.raises(UserError) as caught:
        compare(results, mean=False)
    assert str(caught.value) == f"Tf-test-1.json and Tf+Nd-test-1.json cannot be compared: {difference}"
    elsewhere = [results[0], labelled("Tf+Nd", cfl_result(language="hardest-cfl", **other))]
    assert len(compare(elsewhere, mean=False).groups) == 2


def test_other_strings() -> None:
    one, other = cfl_result(), cfl_result()
    other = dataclasses.replace(other, signature=f"{other.signature}|sha:2")
    with pytest.raises(
        UserError, match="cannot be compared: the strings have no sha in the one and sha:2 in the other"
    ):
        compare([labelled("Tf", one), labelled("Tf+Nd", other)], mean=False)


def test_price_of_length() -> None:
    """log 2 in each string of n symbols and their end, since 40 and 42 are in train; nothing without ends."""
    assert price_of_length(cfl_result()) == pytest.approx({40: math.log(2) / 41, 42: math.log(2) / 43})
    assert price_of_length(cfl_result(eos=False)) == {}


def test_difference_by_length() -> None:
    results = [labelled("Tf", cfl_result(by_length={40: value, 42: 2 * value})) for value in (1.0, 2.0, 3.0)]
    assert difference_by_length(results) == {40: Estimate(2, 1, 3), 42: Estimate(4, 2, 6)}
    assert difference_by_length(results[:1]) == {40: estimate(1), 42: estimate(2)}
