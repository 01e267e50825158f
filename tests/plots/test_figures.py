"""Figures show the numbers that they are given, in one style, and are written whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairseq_stack.plots.panels import draw_weights
from fairseq_stack.plots.style import STYLES, figure, grid, styles_of

pyplot = pytest.importorskip("matplotlib.pyplot")


PAPER = ["Tf", "Tf+Sup", "Tf+Nd", "LSTM", "LSTM+Sup", "LSTM+Nd", "LSTM+Strat"]


def test_a_model_looks_the_same_in_every_figure() -> None:
    looks = styles_of(PAPER)
    assert len({look["color"] for look in looks.values()}) == len(PAPER) == len(STYLES)
    for names in (PAPER[::-1], ["mine", *PAPER[3:]], ["tf+nd", "TF"]):
        actual = {name.lower(): look for name, look in styles_of(names).items()}
        for name, look in looks.items():
            assert actual.get(name.lower(), look) == look
    assert styles_of(["nd"])["nd"] == looks["Tf+Nd"]


def test_all_models_of_a_figure_look_different() -> None:
    names = [*map(str, range(14)), "tf", "Tf", "sup", "Tf+Sup", "nd"]
    assert len({tuple(look.values()) for look in styles_of(names).values()}) == len(names)


def test_weights(tmp_path: Path) -> None:
    weights = [[1.0, 0.0, 0.0], [0.25, 0.75, 0.0]]
    with figure(tmp_path / "a.png", 1, 2, (4, 2)) as panels:
        axes = panels[0, 0]
        draw_weights(axes, weights, rows=("a", "b"), columns=("x", "$y^$", "z"))  # not a formula
        assert axes.images[0].get_array().tolist() == weights
        assert [label.get_text() for label in axes.get_xticklabels()] == ["x", r"\$y^\$", "z"]
        assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]


def test_a_long_title_is_broken_into_lines(tmp_path: Path) -> None:
    with figure(tmp_path / "a.png", 1, 1, (4, 2), title="a title of many words " * 5) as panels:
        drawn = panels[0, 0].figure
    title = drawn._suptitle.get_window_extent()
    assert title.x0 >= 0 and title.x1 <= drawn.bbox.width and title.y1 <= drawn.bbox.height


def test_an_error_while_drawing_leaves_nothing(tmp_path: Path) -> None:
    before = pyplot.get_fignums()
    with pytest.raises(ZeroDivisionError), figure(tmp_path / "a.png", 1, 1, (2, 2)):
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())
    assert pyplot.get_fignums() == before


def test_few_panels_are_in_one_row_and_many_fill_the_rows() -> None:
    assert [grid(number) for number in range(1, 8)] == [(1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (2, 3), (3, 3)]
