"""Closing brackets: distances, depths, and the groups that are shown."""

from __future__ import annotations

from fairseq_stack.evaluation.pushdown import GROUPS, Closing, closings


def test_distance_and_depth() -> None:
    assert list(closings(["(a", "(b", "(c", "c)", "b)", "a)", "(b", "b)"])) == [
        Closing(place=3, distance=1, depth=3, is_last=False),
        Closing(place=4, distance=3, depth=2, is_last=False),
        Closing(place=5, distance=5, depth=1, is_last=False),
        Closing(place=7, distance=1, depth=1, is_last=True),
    ]


def test_groups() -> None:
    deep = list(closings([*["(a"] * 60, *["a)"] * 60]))
    sizes = {group: sum(map(belongs, deep)) for group, belongs in GROUPS.items()}
    assert sizes == {
        "all": 60,
        "distance >= 50": 35,  # 51, 53, ..., 119
        "distance >= 100": 10,
        "distance >= 200": 0,
        "distance >= 300": 0,
        "depth 1 to 10": 10,
        "depth 11 to 20": 10,
        "depth > 20": 40,
        "last of a string": 1,
    }
