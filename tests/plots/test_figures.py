"""Figures show the numbers that they are given, in one style, and are written whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairseq_stack.plots.panels import (
    draw_curves,
    draw_legend,
    draw_runs,
    draw_weights,
    scale_logarithmically,
)
from fairseq_stack.plots.style import STYLES, figure, grid, style, styles_of

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


def test_curves_and_weights(tmp_path: Path) -> None:
    weights = [[1.0, 0.0, 0.0], [0.25, 0.75, 0.0]]
    curves = {"first": {1: 0.5, 3: 0.25}, "second": {1: 2.0, 2: 1.0, 3: 4.0}}
    with figure(tmp_path / "a.png", 1, 2, (4, 2)) as panels:
        draw_curves(panels[0, 1], curves)
        lines = panels[0, 1].get_lines()
        assert {line.get_label(): dict(zip(*line.get_data(), strict=True)) for line in lines} == curves
        axes = panels[0, 0]
        draw_weights(axes, weights, rows=("a", "b"), columns=("x", "y", "z"))
        assert axes.images[0].get_array().tolist() == weights
        assert [label.get_text() for label in axes.get_xticklabels()] == ["x", "y", "z"]
        assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]


def test_an_error_while_drawing_leaves_nothing(tmp_path: Path) -> None:
    before = pyplot.get_fignums()
    with pytest.raises(ZeroDivisionError), figure(tmp_path / "a.png", 1, 1, (2, 2)):
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())
    assert pyplot.get_fignums() == before


def labels(legend: Any) -> list[str]:
    return [text.get_text() for text in legend.get_texts()]


def test_one_legend_has_each_label_once_and_as_it_is(tmp_path: Path) -> None:
    names = ["_mine", r"$\foo$", *(letter * 20 for letter in "abcde")]
    for number, owner in ((1, "below"), (2, "unused")):
        with figure(tmp_path / "a.png", 1, 1 if number == 1 else 3, (4.5, 3)) as panels:
            for axes in panels.flat[:number]:
                for place, name in enumerate(names):
                    draw_runs(axes, name, [{1.0: 1.0}], 0, style(place))
            draw_legend(panels, number)
            drawn = panels.flat[0].figure
            legend = drawn.legends[0] if owner == "below" else panels.flat[2].get_legend()
            assert labels(legend) == [r"$\_$mine", r"\$\foo\$", *names[2:]]
            drawn.draw_without_rendering()
            box, page = legend.get_window_extent(), drawn.bbox
            assert owner == "unused" or page.x0 <= box.x0 < box.x1 <= page.x1
            assert [axes.axison for axes in panels.flat] == [True] * number + [False] * (panels.size - number)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.11, 2.0, ["0.1", "0.2", "0.5", "1", "2"]),
        (0.002, 0.9, ["0.002", "0.005", "0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1"]),
        (0.0001, 900.0, None),
        (0.3, 0.5, None),
    ],
    ids=["one-decade", "three-decades", "many-decades", "less-than-a-decade"],
)
def test_numbers_on_a_logarithmic_scale(tmp_path: Path, low: float, high: float, expected: list[str] | None) -> None:
    """Even if the panel is low, there are some; those of a wide or a narrow scale are matplotlib's."""
    with figure(tmp_path / "a.png", 1, 1, (3, 1.2)) as panels:
        axes = panels[0, 0]
        draw_curves(axes, {"a": {1: low, 2: high}})
        scale_logarithmically(axes)
        axes.figure.draw_without_rendering()
        bottom, top = axes.get_ylim()
        ticks = [*zip(axes.get_yticks(), axes.get_yticklabels(), strict=True)]
        ticks += zip(axes.get_yticks(minor=True), axes.get_yticklabels(minor=True), strict=True)
        shown = [label.get_text() for tick, label in ticks if bottom <= tick <= top and label.get_text()]
        assert axes.get_yscale() == "log"
        assert shown == expected if expected is not None else len(shown) > 1


def test_few_panels_are_in_one_row_and_many_fill_the_rows() -> None:
    assert [grid(number) for number in range(1, 8)] == [(1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (2, 3), (3, 3)]
