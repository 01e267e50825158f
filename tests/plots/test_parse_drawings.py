"""Pictures of parses show the numbers that they are given, nothing is cut off, and no lines of a tree cross."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest

from fairseq_stack.plots.parse_drawings import LEAST_INCHES, draw_attention, draw_tape, draw_tree, tree_size
from fairseq_stack.plots.style import figure
from fairseq_stack_preprocess.trees.spans import spans_of_attachments
from tests.plots.test_stack_drawings import assert_nothing_is_cut_off, texts_of

pytest.importorskip("matplotlib")


def test_tape(tmp_path: Path) -> None:
    with figure(tmp_path / "a.png", 1, 1, (5, 4)) as panels:
        axes = panels[0, 0]
        draw_tape(axes, [[0], [1, 1], [1, 1, 0], [2, 2, 2, 2]], ["The", "$x", "is", "happy"], "depth")
        (image,) = axes.get_images()
        shown = image.get_array().filled(-1).tolist()
        assert shown == [[0, -1, -1, -1], [1, 1, -1, -1], [1, 1, 0, -1], [2, 2, 2, 2]]
        (stairs,) = axes.lines
        above_the_diagonal = [(0.5, 0), (1, 0.5), (1.5, 1), (2, 1.5)]  # the middle of each stair
        path = stairs.get_path().interpolated(2).vertices.tolist()
        assert all([x, y] in path for x, y in above_the_diagonal)
        assert texts_of(axes) == ["0", "1", "1", "1", "1", "0", "2", "2", "2", "2"]
        assert [label.get_text() for label in axes.get_xticklabels()] == ["The", r"\$x", "is", "happy"]
        assert image.colorbar.ax.get_ylabel() == "depth" and image.colorbar.ax.get_ylim() == (0, 2)
        assert_nothing_is_cut_off(axes)


LONG = ["the", "girl", "that", "the", "farmers", "near", "the", "senators", "thank", "laughs", "at", "a", "W" * 40] * 3
TREES: list[tuple[Sequence[str], Sequence[int]]] = [
    (["dog"], [1]),
    (["The", "dog", "is", "happy"], [1, 1, 3, 2]),
    (["The", "dog", "is", "_happy"], [1, 1, 3, 3]),
    (LONG, [1, 1, 3, 4, 4, 6, 7, 6, 3, 2, 11, 11, 10, *range(14, 39), 13]),
]


@pytest.mark.parametrize(("words", "attachments"), TREES, ids=["one", "tree", "forest", "long"])
def test_tree(tmp_path: Path, words: Sequence[str], attachments: Sequence[int]) -> None:
    width, height = tree_size(words, attachments)
    with figure(tmp_path / "a.png", 1, 1, (width, height)) as panels:
        axes = panels[0, 0]
        draw_tree(axes, words, attachments)
        assert [text.replace(r"$\_$", "_") for text in texts_of(axes)] == list(words)
        lines = [list(zip(*line.get_data(), strict=True)) for line in axes.lines]
        leaves = {(text.get_position()[0], 0) for text in axes.texts}
        joined = {point for line in lines for point in (line[0], line[3])}
        tops = {((line[1][0] + line[2][0]) / 2, line[1][1]) for line in lines}
        assert joined <= leaves | tops, "a line that leads nowhere"
        assert len(lines) == len(spans_of_attachments(attachments))
        bars = [(line[1][1], line[1][0], line[2][0]) for line in lines]
        stems = [(line[end][0], line[end][1], line[end - 1 if end == 3 else 1][1]) for line in lines for end in (0, 3)]
        assert not any(low < y < high and left < x < right for y, left, right in bars for x, low, high in stems)
        axes.figure.canvas.draw()
        boxes = sorted((text.get_window_extent() for text in axes.texts), key=lambda box: box.x0)
        assert all(one.x1 <= other.x0 for one, other in itertools.pairwise(boxes))
        assert_nothing_is_cut_off(axes)
    assert LEAST_INCHES <= width < 25


def test_attention(tmp_path: Path) -> None:
    with figure(tmp_path / "a.png", 1, 1, (6, 3)) as panels:
        axes = panels[0, 0]
        groups = {"subject": [1], "distractors": [2, 4]}
        draw_attention(axes, [0.1, 0.2, 0.25, 0.15, 0.3], ["ROOT", "a", "b", "c", "d"], groups)
        bars = axes.patches[:5]
        assert [bar.get_height() for bar in bars] == [0.1, 0.2, 0.25, 0.15, 0.3]
        looks = [(bar.get_facecolor(), bar.get_hatch()) for bar in bars]
        assert looks[0] == looks[3] and looks[2] == looks[4] and len(set(looks)) == 3
        legend = [text.get_text() for text in axes.get_legend().get_texts()]
        assert legend == ["subject (sum 0.20)", "distractors (sum 0.55)"]
        assert_nothing_is_cut_off(axes)
