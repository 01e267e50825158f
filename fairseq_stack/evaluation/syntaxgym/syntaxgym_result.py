"""The result of ``fairseq-stack evaluate-syntaxgym``."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..markdown import table
from ..results import Result, Row
from .formulas import Surprisals
from .suites import CATEGORIES, Item, Suite


@dataclass(frozen=True)
class Prediction:
    """A formula, and the share of the items of which it is true."""

    formula: str
    accuracy: float


@dataclass(frozen=True)
class Region:
    """The mean over the items of the surprisal of a region, by the metric of the suite, in bits."""

    condition: str
    number: int
    name: str
    surprisal: float


@dataclass(frozen=True)
class SuiteScore:
    """A model on a suite.

    Attributes:
        name: of the suite.
        category: its category, or None.
        items: number of its items.
        unknown: share of its sentences with a word that the model does not know.
        accuracy: the share of items of which the first prediction is true.
        predictions: all predictions of the suite.
        regions: mean surprisals, by condition and number.
    """

    name: str
    category: str | None
    items: int
    unknown: float
    accuracy: float
    predictions: tuple[Prediction, ...]
    regions: tuple[Region, ...]

    def cells(self) -> list[str]:
        """A row of the table."""
        return [self.name, self.category or "", f"{self.items}", _percent(self.unknown), _percent(self.accuracy)]


@dataclass(frozen=True)
class CategoryScore:
    """The mean accuracy of the suites of a category."""

    name: str
    suites: int
    accuracy: float


@dataclass(frozen=True)
class SyntaxGymResult(Result):
    """A model on test suites.

    Attributes:
        accuracy: the mean over the suites that have a category; None if there are none.
        categories: for each category of which there is a suite.
        suites: for each suite.
    """

    kind: ClassVar[str] = "evaluate-syntaxgym"
    accuracy: float | None
    categories: tuple[CategoryScore, ...]
    suites: tuple[SuiteScore, ...]

    def lines(self) -> list[str]:
        of_suites = sorted(self.suites, key=lambda score: (score.category is None, score.category or "", score.name))
        categories = [[score.name, f"{score.suites}", _percent(score.accuracy)] for score in self.categories]
        if self.accuracy is not None:
            number = sum(score.suites for score in self.categories)
            categories.append(["all suites", f"{number}", _percent(self.accuracy)])
        return [
            self.model.on("SyntaxGym"),
            "",
            table(
                ("suite", "category", "items", "sentences with unknown words", "accuracy"),
                [score.cells() for score in of_suites],
            ),
            "",
            table(("category", "suites", "accuracy"), categories),
        ]


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def score_suite(suite: Suite, surprisals: Sequence[Surprisals], unknown: float) -> SuiteScore:
    """The score of a suite.

    Args:
        suite: the suite.
        surprisals: for each item, in bits.
        unknown: share of the sentences with an unknown word.
    """
    predictions = tuple(
        Prediction(formula.text, statistics.fmean(formula.holds(item) for item in surprisals))
        for formula in suite.formulas
    )
    regions = _mean_surprisals(suite, surprisals)
    accuracy = predictions[0].accuracy
    return SuiteScore(suite.name, suite.category, len(suite.items), unknown, accuracy, predictions, regions)


def rows_of_suite(suite: Suite, surprisals: Sequence[Surprisals]) -> Iterator[Row]:
    """A row for each item and prediction: whether it holds. The first prediction is the suite's score."""
    for item, of_item in zip(suite.items, surprisals, strict=True):
        for number, formula in enumerate(suite.formulas, start=1):
            yield {
                "suite": suite.name,
                "category": suite.category,
                "item": item.number,
                "prediction": number,
                "formula": formula.text,
                "holds": formula.holds(of_item),
            }


def _mean_surprisals(suite: Suite, surprisals: Iterable[Surprisals]) -> tuple[Region, ...]:
    values: dict[tuple[str, int], list[float]] = defaultdict(list)
    for item in surprisals:
        for condition, regions in item.items():
            for number, surprisal in regions.items():
                values[condition, number].append(surprisal)
    return tuple(
        Region(condition, number, suite.region_names.get(number, ""), statistics.fmean(of_region))
        for (condition, number), of_region in values.items()
    )


def score_categories(suites: Sequence[SuiteScore]) -> tuple[CategoryScore, ...]:
    """The mean over the suites of each category."""
    scores = []
    for name in CATEGORIES:
        accuracies = [suite.accuracy for suite in suites if suite.category == name]
        if accuracies:
            scores.append(CategoryScore(name, len(accuracies), statistics.fmean(accuracies)))
    return tuple(scores)


def total(suites: Sequence[SuiteScore]) -> float | None:
    """The mean over all suites that have a category."""
    accuracies = [suite.accuracy for suite in suites if suite.category is not None]
    return statistics.fmean(accuracies) if accuracies else None


def sentences_of(item: Item) -> dict[str, list[tuple[int, str]]]:
    """For each condition the regions that are not empty, and the full stop, which is region 0 if no region has it."""
    sentences = {}
    for condition, regions in item.regions.items():
        parts = [(number, text.strip()) for number, text in sorted(regions.items()) if text.strip()]
        if not parts or not parts[-1][1].endswith("."):
            parts.append((0, "."))
        sentences[condition] = parts
    return sentences
