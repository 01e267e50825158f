"""Points are told apart by colours and markers."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairseq_stack.plots.panels import MOST_POINTS, draw_points
from fairseq_stack.plots.style import STYLES, figure

pytest.importorskip("matplotlib")


def test_points(tmp_path: Path) -> None:
    shown = ["a", "_b", *map(str, range(len(STYLES)))]
    names = ["a", "rare", "_b", "a", shown[-1]]
    points = [(float(x), x / 2) for x in range(len(names))]
    with figure(tmp_path / "a.png", 1, 1, (3, 2)) as panels:
        axes = panels[0, 0]
        draw_points(axes, points, names, shown, "last input")
        drawn = [part.get_offsets().tolist() for part in axes.collections]
        written = {text.get_text(): text.get_position() for text in axes.texts}
        legend = axes.get_legend()
        labels = [text.get_text() for text in legend.get_texts()]
        faces = [len(part.get_facecolors()) for part in axes.collections]
    assert drawn == [[[1, 0.5]], [[0, 0], [3, 1.5]], [[2, 1]], [[4, 2]]]
    assert labels == ["other (1)", "a (2)", r"$\_$b (1)", "6 (1)"] and legend.get_title().get_text() == "last input"
    assert written == {"a": (1.5, 0.75), r"$\_$b": (2, 1), "6": (4, 2)}, "names at the medians"
    assert faces == [1, 1, 1, 0], "names beyond the styles are hollow"


def test_many_points_are_thinned(tmp_path: Path) -> None:
    count = 2 * MOST_POINTS + 1
    with figure(tmp_path / "a.png", 1, 1, (3, 2)) as panels:
        axes = panels[0, 0]
        draw_points(axes, [(x, 0.0) for x in range(count)], ["a"] * count, ["a"], "")
        assert axes.collections[0].get_offsets()[:, 0].tolist() == list(range(0, count, 3))
        assert axes.get_legend().get_texts()[0].get_text() == f"a ({count})"
