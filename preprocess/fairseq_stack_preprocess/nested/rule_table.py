"""Tables of weighted synchronous rules with feature variables, and what they stand for.

    weight | left side    | source                  | target   | condition
    3      | NP[C G N]    | DET[C G N]#1 N[C G N]#2 | #1 #2    |

Features that the table's domains name are variables, which the expansions of a row replace by each of their
values in turn; other features are constants. ``#1`` links a nonterminal of the source side with its place on
the target side. The optional condition names a predicate on the values of the variables: other expansions are
left out. A line that begins with ``#`` and a blank line mean nothing.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from .synchronous_grammar import Rule, Side

Features = Mapping[str, str]
"""Values of the feature variables, such as ``{"G": "m", "N": "sg"}``."""

_NONTERMINAL = re.compile(r"(?P<name>\w+)(?:\[(?P<features>[^\]]*)\])?(?:#(?P<link>\d+))?")
_TOKEN = re.compile(r"\w+\[[^\]]*\]#\d+|\S+")


def table_rows(table: str) -> Iterator[list[str]]:
    """The rows of a table, each a list of the cells between its bars."""
    for line in table.splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            yield [cell.strip() for cell in line.split("|")]


def expand_table(
    table: str, domains: Mapping[str, Sequence[str]], conditions: Mapping[str, Callable[[Features], bool]]
) -> Iterator[Rule]:
    """The rules that a table stands for.

    The weight of a row is shared equally by its expansions with the same left side, so
    that a row is as probable as its weight says whatever the number of its expansions.

    Args:
        table: the rows, in the notation of this module.
        domains: the values of each feature variable.
        conditions: the predicates that the last column may name.
    """
    for weight, left, source, target, *name in table_rows(table):
        condition = conditions[name[0]] if name else None
        yield from _expand_row(float(weight), (left, source, target), domains, condition)


def _expand_row(
    weight: float,
    row: tuple[str, str, str],
    domains: Mapping[str, Sequence[str]],
    condition: Callable[[Features], bool] | None,
) -> Iterator[Rule]:
    left, source, target = row
    used = {name for names in re.findall(r"\[([^\]]*)\]", f"{left} {source}") for name in names.split()}
    variables = sorted(used & set(domains))
    expansions = []
    for values in itertools.product(*(domains[variable] for variable in variables)):
        features = dict(zip(variables, values, strict=True))
        if condition is None or condition(features):
            expansions.append((_symbol(left, features), *_sides(source, target, features)))
    shares = Counter(expanded_left for expanded_left, *_ in expansions)
    for expanded_left, children, source_side, target_side in expansions:
        yield Rule(expanded_left, children, source_side, target_side, weight / shares[expanded_left])


def _symbol(text: str, features: Features) -> str:
    """A nonterminal with its variables replaced by their values and its link taken off."""
    match = _NONTERMINAL.fullmatch(text)
    assert match is not None
    if match["features"] is None:
        return match["name"]
    return f"{match['name']}[{' '.join(features.get(v, v) for v in match['features'].split())}]"


def _sides(source: str, target: str, features: Features) -> tuple[tuple[str, ...], Side, Side]:
    """Children, source side and target side of one expansion."""
    tokens = _TOKEN.findall(source)
    linked = [token for token in tokens if "#" in token]
    links = {token.rsplit("#", 1)[1]: index for index, token in enumerate(linked)}
    source_side = tuple(links[t.rsplit("#", 1)[1]] if "#" in t else t for t in tokens)
    target_side = tuple(links[t[1:]] if t.startswith("#") else t for t in target.split())
    return tuple(_symbol(token, features) for token in linked), source_side, target_side
