"""SyntaxGym (Hu et al., 2020): the files of test suites, and the result of ``fairseq-stack evaluate-syntaxgym``."""

from __future__ import annotations

import itertools
import json
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from fairseq_stack.errors import UserError
from fairseq_stack.files import read_text, reading_as

from .formulas import ALL_REGIONS, Formula, Surprisals, parse
from .markdown import table
from .results import Result, Row

CATEGORIES: Mapping[str, tuple[str, ...]] = {
    "agreement": ("number_orc", "number_prep", "number_src"),
    "licensing": (
        *("npi_orc_any", "npi_orc_ever", "npi_src_any", "npi_src_ever"),
        *("reflexive_orc_fem", "reflexive_orc_masc", "reflexive_prep_fem", "reflexive_prep_masc"),
        *("reflexive_src_fem", "reflexive_src_masc"),
    ),
    "garden-path effects": ("mvrr", "mvrr_mod", "npz_ambig", "npz_ambig_mod", "npz_obj", "npz_obj_mod"),
    "gross syntactic state": (
        *("subordination", "subordination_orc-orc", "subordination_pp-pp", "subordination_src-src"),
    ),
    "center embedding": ("center_embed", "center_embed_mod"),
    "long-distance dependencies": (
        *("cleft", "cleft_modifier", "fgd-embed3", "fgd-embed4", "fgd_hierarchy", "fgd_object", "fgd_pp"),
        "fgd_subject",
    ),
}
"""The categories of Hu et al. (2020) and their suites; other suites have none."""

Name = TypeVar("Name", int, str)
Content = TypeVar("Content")

SUM, MEAN = METRICS = ("sum", "mean")
"""How the surprisal of a region comes from those of its tokens, as the entry ``metric`` of a suite says."""


@dataclass(frozen=True)
class Item:
    """A set of sentences that differ in their condition.

    Attributes:
        number: of the item in the suite.
        regions: for each condition the text of each region, which may be empty, by its number.
    """

    number: int
    regions: Mapping[str, Mapping[int, str]]


@dataclass(frozen=True)
class Suite:
    """A test suite.

    Attributes:
        name: its name.
        category: its category, or None.
        metric: of :data:`METRICS`.
        region_names: by number.
        formulas: its predictions; the first one is the suite's score.
        items: its items.
    """

    name: str
    category: str | None
    metric: str
    region_names: Mapping[int, str]
    formulas: tuple[Formula, ...]
    items: tuple[Item, ...]


def read_suites(folder: Path) -> list[Suite]:
    """Read all ``*.json`` of a folder, in the order of their names.

    Raises:
        UserError: the folder has none, or a file is not a suite: the message names the file.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder; expected the one with the test suites, *.json")
    suites = [read_suite(path) for path in sorted(folder.glob("*.json"))]
    if not suites:
        raise UserError(f"{folder} has no test suites, *.json")
    return suites


def read_suite(path: Path) -> Suite:
    """Read a suite.

    Raises:
        UserError: see :func:`read_suites`.
    """
    with reading_as("a test suite of SyntaxGym", path):
        suite = _suite(json.loads(read_text(path)))
    for item in suite.items:
        _require_regions(path, suite, item)
    return suite


def _suite(content: Any) -> Suite:
    name, metric = _text(content["meta"]["name"]), content["meta"].get("metric", SUM)
    if metric not in METRICS:
        raise ValueError(f"the metric must be one of {', '.join(METRICS)}, got {metric!r}")
    if not (content["predictions"] and content["items"]):
        raise ValueError("expected at least one prediction and one item")
    return Suite(
        name=name,
        category=next((category for category, suites in CATEGORIES.items() if name in suites), None),
        metric=metric,
        region_names={int(number): text for number, text in content["region_meta"].items()},
        formulas=tuple(parse(prediction["formula"]) for prediction in content["predictions"]),
        items=_items(content["items"]),
    )


def _items(content: Any) -> tuple[Item, ...]:
    conditions = _by_name((_number(item["item_number"]), _conditions(item["conditions"])) for item in content)
    return tuple(itertools.starmap(Item, conditions.items()))


def _conditions(content: Any) -> dict[str, Mapping[int, str]]:
    return _by_name((_text(entry["condition_name"]), _regions(entry["regions"])) for entry in content)


def _regions(content: Any) -> Mapping[int, str]:
    return _by_name((_number(region["region_number"]), _text(region["content"])) for region in content)


def _by_name(pairs: Iterable[tuple[Name, Content]]) -> dict[Name, Content]:
    named: dict[Name, Content] = {}
    for name, content in pairs:
        if name in named:
            raise ValueError(f"expected different items, conditions and regions, got {name!r} twice")
        named[name] = content
    return named


def _text(content: Any) -> str:
    if not isinstance(content, str):
        raise TypeError(f"expected a text, got {content!r}")
    return content


def _number(content: Any) -> int:
    if not isinstance(content, int):
        raise TypeError(f"expected a whole number, got {content!r}")
    return content


def _require_regions(path: Path, suite: Suite, item: Item) -> None:
    for formula in suite.formulas:
        for number, condition in sorted(formula.regions):
            regions = item.regions.get(condition, {})
            if not (regions if number == ALL_REGIONS else number in regions):
                where = f"{path}, item {item.number}"
                raise UserError(f"{where}: region {number} of the condition {condition}, of a formula, is missing")


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
    """For each condition the regions that are not empty."""
    return {
        condition: [(number, text.strip()) for number, text in sorted(regions.items()) if text.strip()]
        for condition, regions in item.regions.items()
    }
