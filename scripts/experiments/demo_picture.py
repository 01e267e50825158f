"""The demo's picture of results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairseq_stack.cli.plot.lengths import draw_panel
from fairseq_stack.evaluation.cfl_comparison import Labelled
from fairseq_stack.evaluation.cfl_result import CFLResult
from fairseq_stack.plots.style import figure, style, styles_of


def draw_results(dyck: Mapping[str, CFLResult], exact_match: Mapping[str, Mapping[int, float]], path: Path) -> None:
    """Draw language models by length, and translation models by depth.

    Args:
        dyck: the results of language models, by their names.
        exact_match: for each translation model, the share of exact translations by depth.
        path: the file to write.
    """
    with figure(path, rows=1, columns=2, size=(10, 3.6), file_format=path.suffix[1:]) as panels:
        draw_difference_by_length(panels[0, 0], dyck)
        draw_exact_match_by_depth(panels[0, 1], exact_match)


def draw_difference_by_length(axes: Any, results: Mapping[str, CFLResult]) -> None:
    """The cross-entropy difference on the test strings against their length."""
    models = {name: [Labelled(name, "", result)] for name, result in results.items()}
    draw_panel(axes, models, styles_of(models), log=False)
    axes.set(
        title="Language modelling of Dyck strings", xlabel="length", ylabel="nats per symbol above the lower bound"
    )
    axes.legend(facecolor="white", framealpha=1, edgecolor="none", loc="upper left")  # on the shaded lengths


def draw_exact_match_by_depth(axes: Any, exact_match: Mapping[str, Mapping[int, float]]) -> None:
    """The share of test sentences translated without a mistake against their nesting, as groups of bars."""
    width = 0.8 / len(exact_match)
    for number, (name, by_depth) in enumerate(exact_match.items()):
        places = [depth + (number - (len(exact_match) - 1) / 2) * width for depth in by_depth]
        heights = [100 * share for share in by_depth.values()]
        axes.bar_label(
            axes.bar(places, heights, width, color=style(number)["color"], label=name), fmt="%.0f", fontsize=8
        )
    axes.set_xticks(sorted({depth for by_depth in exact_match.values() for depth in by_depth}))
    axes.set_yticks(range(0, 101, 20))
    axes.set_ylim(0, 118)  # room for the legend
    axes.set(title="Nested translation", xlabel="depth of nesting", ylabel="exact translations (%)")
    axes.legend(frameon=False, ncols=3, loc="upper right", bbox_to_anchor=(1, 1.02))
