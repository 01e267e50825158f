"""Pictures of stacks show the numbers that they are given, and nothing is cut off."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairseq_stack.plots.stack_drawings import Cell, draw_growing_stack, draw_shares, name_cells, width_for
from fairseq_stack.plots.style import figure

pytest.importorskip("matplotlib")
STACKS: list[list[Cell]] = [[("", 0)], [("", 0), ("a", 1)], [("", 0), ("a", 2)], [("", 0), ("a", 2)], [("", 0)]]
WRITTEN = [False, True, True, True, False]


def texts_of(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.texts if text.get_text()]


def assert_nothing_is_cut_off(axes: Any) -> None:
    axes.figure.draw_without_rendering()
    box = axes.get_tightbbox()
    assert box.x0 >= 0 and box.y0 >= 0
    assert box.x1 <= axes.figure.bbox.x1 and box.y1 <= axes.figure.bbox.y1


@pytest.mark.parametrize("symbols", [["a"], ["a", "$x_1"], ["</s>", "Donaudampfschifffahrt"], ["w"] * 90], ids=len)
def test_shares(tmp_path: Path, symbols: Sequence[str]) -> None:
    shares = np.linspace(0, 1, 2 * len(symbols)).reshape(2, -1)
    with figure(tmp_path / "a.png", 1, 1, (width_for(len(symbols)), 4)) as panels:
        axes = panels[0, 0]
        draw_shares(axes, shares.tolist(), ["push", "pop"], symbols, "probability")
        axes.set(xlabel="input", ylabel="operation")
        (image,) = axes.get_images()
        assert np.array_equal(image.get_array(), shares)
        assert image.get_clim() == (0, 1)
        assert image.colorbar.ax.get_ylabel() == "probability"
        assert [label.get_text() for label in axes.get_xticklabels()] == [x.replace("$", r"\$") for x in symbols]
        assert_nothing_is_cut_off(axes)


def test_a_stack_grows_and_shrinks(tmp_path: Path) -> None:
    with figure(tmp_path / "a.png", 1, 1, (6, 3)) as panels:
        axes = panels[0, 0]
        draw_growing_stack(axes, STACKS, WRITTEN, [["", "push", "repl.", "repl.", "pop"]], ["a", "b", "c", "d"])
        name_cells(axes, ["zero", "one", "two"])
        cells = {}
        for patch in axes.patches:
            for x, y in patch.get_path().vertices[::5]:  # a corner of each
                cells[round(x + 0.45), round(y)] = patch.get_linewidth() > 1, patch.get_facecolor(), patch.get_hatch()
        assert sorted(cells) == [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1), (4, 0)]
        written = {place for place, (is_new, *_) in cells.items() if is_new}
        assert written == {(1, 1), (2, 1), (3, 1)}, "a top that is replaced by the same symbol is one of them"
        assert len({look[1:] for look in cells.values()}) == 3
        assert texts_of(axes) == ["a", "a", "a", "push", "repl.", "repl.", "pop"]
        assert [label.get_text() for label in axes.get_xticklabels()] == ["start", "a", "b", "c", "d"]
        legend = [text.get_text() for text in axes.get_legend().get_texts()]
        assert legend == ["zero", "one", "two", "pushed or replaced"]
        assert_nothing_is_cut_off(axes)
