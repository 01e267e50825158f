"""The files of SyntaxGym's test suites."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairseq_stack.errors import UserError
from fairseq_stack.files import read_text

from .formulas import Formula, parse

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
    try:
        suite = _suite(json.loads(read_text(path)))
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path} is not a test suite of SyntaxGym: {error!r}") from error
    for item in suite.items:
        _require_regions(path, suite, item)
    return suite


def _suite(content: Any) -> Suite:
    name, metric = content["meta"]["name"], content["meta"].get("metric", SUM)
    if metric not in METRICS:
        raise ValueError(f"the metric must be one of {', '.join(METRICS)}, got {metric!r}")
    return Suite(
        name=name,
        category=next((category for category, suites in CATEGORIES.items() if name in suites), None),
        metric=metric,
        region_names={int(number): text for number, text in content["region_meta"].items()},
        formulas=tuple(parse(prediction["formula"]) for prediction in content["predictions"]),
        items=tuple(Item(int(item["item_number"]), _conditions(item["conditions"])) for item in content["items"]),
    )


def _conditions(content: Any) -> dict[str, Mapping[int, str]]:
    return {
        entry["condition_name"]: {int(region["region_number"]): region["content"] for region in entry["regions"]}
        for entry in content
    }


def _require_regions(path: Path, suite: Suite, item: Item) -> None:
    for formula in suite.formulas:
        for number, condition in sorted(formula.regions):
            if number not in item.regions.get(condition, {}):
                where = f"{path}, item {item.number}"
                raise UserError(f"{where}: region {number} of the condition {condition}, of a formula, is missing")
