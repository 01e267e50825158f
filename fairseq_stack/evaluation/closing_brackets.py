"""Closing brackets of Dyck strings: how far away their opening ones are, and how deep they are nested."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from fairseq_stack_preprocess.cfl.bounded_dyck import attachments


@dataclass(frozen=True)
class Closing:
    """A closing bracket.

    Attributes:
        place: its place in the string, from 0 on.
        distance: how many symbols before it its opening bracket is.
        depth: how many brackets are open before it.
        is_last: whether it ends the string.
    """

    place: int
    distance: int
    depth: int
    is_last: bool


def closings(string: Sequence[str]) -> Iterator[Closing]:
    """The closing brackets of a string.

    Raises:
        ValueError: a closing bracket has no opening one of its type.
    """
    depth = 0
    for place, attached in enumerate(attachments(string)):
        distance = place + 1 - attached
        if distance:
            yield Closing(place, distance, depth, place == len(string) - 1)
        depth += -1 if distance else 1


def _at_distance(least: int) -> Callable[[Closing], bool]:
    return lambda closing: closing.distance >= least


GROUPS: dict[str, Callable[[Closing], bool]] = {
    "all": lambda closing: True,
    **{f"distance >= {least}": _at_distance(least) for least in (50, 100, 200, 300)},
    "depth 1 to 10": lambda closing: closing.depth <= 10,
    "depth 11 to 20": lambda closing: 10 < closing.depth <= 20,
    "depth > 20": lambda closing: closing.depth > 20,
    "last of a string": lambda closing: closing.is_last,
}
"""The groups of closing brackets whose accuracies are shown: by distance as in Murty et al. (2023), and by depth."""
