"""Figures show the numbers that they are given, in one style, and are written whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairseq_stack.errors import UserError
from fairseq_stack.plots.lengths import draw_lengths
from fairseq_stack.plots.panels import draw_bars, draw_bound, draw_curves, draw_weights
from fairseq_stack.plots.style import STYLES, figure, style

pyplot = pytest.importorskip("matplotlib.pyplot")
CURVES = {"first": {1: 0.5, 3: 0.25}, "second": {1: 2.0, 2: 1.0, 3: 4.0}}


def test_every_style_is_different() -> None:
    for property_ in ("color", "marker"):
        assert len({style[property_] for style in STYLES}) == len(STYLES)
    assert style(len(STYLES)) == style(0)


def test_curves_go_through_their_points(tmp_path: Path) -> None:
    with figure(tmp_path / "a.png", 1, 1, (2, 2)) as panels:
        axes = panels[0, 0]
        draw_curves(axes, CURVES)
        draw_bound(axes, 0.125, "bound")
        *curves, bound = axes.get_lines()
        assert {line.get_label(): dict(zip(*line.get_data(), strict=True)) for line in curves} == CURVES
        assert [line.get_color() for line in curves] == [STYLES[0]["color"], STYLES[1]["color"]]
        assert (bound.get_label(), set(bound.get_ydata())) == ("bound", {0.125})


def test_bars_stand_beside_each_other(tmp_path: Path) -> None:
    with figure(tmp_path / "a.png", 1, 1, (2, 2)) as panels:
        axes = panels[0, 0]
        draw_bars(axes, CURVES)
        assert [[bar.get_height() for bar in bars] for bars in axes.containers] == [[0.5, 0.25], [2.0, 1.0, 4.0]]
        assert list(axes.get_xticks()) == [1, 2, 3]
        of_1, of_3 = ([bars[place] for bars in axes.containers] for place in (0, -1))
        for group, (left, right) in ((1, of_1), (3, of_3)):
            assert left.get_x() + left.get_width() == pytest.approx(right.get_x()) == pytest.approx(group)


def test_weights_are_where_their_labels_are(tmp_path: Path) -> None:
    weights = [[1.0, 0.0, 0.0], [0.25, 0.75, 0.0]]
    with figure(tmp_path / "a.png", 1, 1, (2, 2)) as panels:
        axes = panels[0, 0]
        draw_weights(axes, weights, rows=("a", "b"), columns=("x", "y", "z"))
        assert axes.images[0].get_array().tolist() == weights
        assert [label.get_text() for label in axes.get_xticklabels()] == ["x", "y", "z"]
        assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]


def test_lengths_have_a_panel_for_each_column(tmp_path: Path) -> None:
    draw_lengths({"de": {"train": [1, 2, 2], "test": [3]}, "en": {"train": [4]}}, tmp_path / "two.png")
    draw_lengths({"de": {"train": [1, 2, 2], "test": [3]}}, tmp_path / "one.png")
    two, one = (pyplot.imread(tmp_path / f"{name}.png").shape[1] for name in ("two", "one"))
    assert two == 2 * one


def test_an_error_while_drawing_leaves_nothing(tmp_path: Path) -> None:
    before = pyplot.get_fignums()
    with pytest.raises(ZeroDivisionError), figure(tmp_path / "a.png", 1, 1, (2, 2)):
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())
    assert pyplot.get_fignums() == before


def test_a_figure_that_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "none" / "a.png"
    with pytest.raises(UserError) as caught, figure(path, 1, 1, (2, 2)):
        pass
    assert str(caught.value) == f"cannot write {path}: No such file or directory"
