"""Predictions of SyntaxGym's suites, such as ``[(6;%what_gap%) < (6;%that_gap%)] & [(7;%a%) + (8;%a%) > 0]``.

They join comparisons by ``&`` and ``|``. A comparison has two sums with ``<``, ``>`` or ``=`` between them. A sum has
surprisals of regions and numbers with ``+`` or ``-`` between them; the region ``*`` has the surprisal of all. ``|``
binds loosest, then ``&``, the comparison and the sum: as in Python, whose parser reads them.
"""

from __future__ import annotations

import ast
import operator
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Surprisals = Mapping[str, Mapping[int, float]]
"""For each condition of an item, the surprisal of each region by its number."""

ALL_REGIONS = 0
"""The number of the region ``*``; others begin at 1."""

_REGION = re.compile(r"\(\s*(\d+|\*)\s*;\s*%([^%]+)%\s*\)")
_PYTHON = str.maketrans({"[": "(", "]": ")", "&": " and ", "|": " or ", "=": "=="})
_OPERATORS: Mapping[type[ast.AST], Callable[[float, float], Any]] = {
    ast.Lt: operator.lt,
    ast.Gt: operator.gt,
    ast.Eq: lambda x, y: abs(x - y) <= 1e-3 + 1e-5 * abs(y),  # as SyntaxGym's
    ast.Add: operator.add,
    ast.Sub: operator.sub,
}

RANDOM_ITEMS = 4000
"""The standard error of a chance is at most 0.8 percentage points."""


@dataclass(frozen=True)
class Formula:
    """A prediction.

    Attributes:
        text: as the suite has it.
        regions: the regions and conditions that it names.
        holds: whether it is true of an item's surprisals.
    """

    text: str
    regions: frozenset[tuple[int, str]]
    holds: Callable[[Surprisals], bool]


def chance(text: str) -> float:
    """The share of items of which a formula is true if all surprisals are independent and uniform.

    A formula with one comparison has about 1/2, and one with k independent comparisons about 1/2^k. There are
    :data:`RANDOM_ITEMS` items, always the same.

    Raises:
        ValueError: see :func:`parse`.
    """
    formula, generator = parse(text), random.Random(1)
    true = 0
    for _ in range(RANDOM_ITEMS):
        surprisals: dict[str, dict[int, float]] = {}
        for region, condition in sorted(formula.regions):
            surprisals.setdefault(condition, {})[region] = generator.random()
        true += formula.holds(surprisals)
    return true / RANDOM_ITEMS


def parse(text: str) -> Formula:
    """Parse a formula.

    Raises:
        ValueError: the text is not a formula.
    """
    names: dict[tuple[int, str], str] = {}

    def name(match: re.Match[str]) -> str:
        return names.setdefault((ALL_REGIONS if match[1] == "*" else int(match[1]), match[2]), f"region{len(names)}")

    def holds(surprisals: Surprisals) -> bool:
        def value(region: int, condition: str) -> float:
            regions = surprisals[condition]
            return sum(regions.values()) if region == ALL_REGIONS else regions[region]

        return _truth(tree, {name: value(*key) for key, name in names.items()})

    try:
        tree = ast.parse(" ".join(_REGION.sub(name, text).translate(_PYTHON).split()), mode="eval").body
        _truth(tree, dict.fromkeys(names.values(), 0.0))
    except (MemoryError, OverflowError, RecursionError, SyntaxError, ValueError) as error:
        raise ValueError(f"{text!r:.200}: expected a formula, such as '(1;%a%) < (1;%b%) & (2;%a%) > 0'") from error
    return Formula(text, frozenset(names), holds)


def _truth(node: ast.expr, values: Mapping[str, float]) -> bool:
    """Whether an expression is true; ValueError if any part of it is not one of a formula."""
    match node:
        case ast.BoolOp(op, parts):
            truths = [_truth(part, values) for part in parts]
            return all(truths) if isinstance(op, ast.And) else any(truths)
        case ast.Compare(left, [ast.Lt() | ast.Gt() | ast.Eq() as comparison], [right]):
            return bool(_OPERATORS[type(comparison)](_number(left, values), _number(right, values)))
    raise ValueError


def _number(node: ast.expr, values: Mapping[str, float]) -> float:
    match node:
        case ast.Name(name) if name in values:
            return values[name]
        case ast.Constant(int() | float() as number):
            return number
        case ast.BinOp(left, ast.Add() | ast.Sub() as sign, right):
            return float(_OPERATORS[type(sign)](_number(left, values), _number(right, values)))
    raise ValueError
