"""The demo's picture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairseq_stack.cli.plot.lengths import draw_panel
from fairseq_stack.evaluation.cfl_comparison import Labelled
from fairseq_stack.evaluation.cfl_result import CFLResult
from fairseq_stack.inspection.pictures import draw_run
from fairseq_stack.modules import InspectedAutomaton
from fairseq_stack.plots.style import figure, style, styles_of


def draw(
    dyck: Mapping[str, CFLResult],
    exact_match: Mapping[str, Mapping[int, float]],
    stack: InspectedAutomaton,
    path: Path,
) -> None:
    """Draw language models by length, translation models by depth, and below both of them the best run of a stack.

    Args:
        dyck: the results of language models, by their names.
        exact_match: for each translation model, the share of exact translations by depth.
        stack: the stack.
        path: the file to write.
    """
    with figure(path, rows=2, columns=2, size=(10, 7), file_format=path.suffix[1:]) as panels:
        draw_difference_by_length(panels[0, 0], dyck)
        draw_exact_match_by_depth(panels[0, 1], exact_match)
        draw_best_run(joined(panels[1]), stack)


def joined(row: Any) -> Any:
    """One panel in the place of a row of panels."""
    drawn, place = row[0].figure, row[0].get_subplotspec()
    for axes in row:
        axes.remove()
    return drawn.add_subplot(place.get_gridspec()[place.rowspan.start, :])


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


def draw_best_run(axes: Any, stack: InspectedAutomaton) -> None:
    """The best run of a stack, which grows and shrinks."""
    draw_run(axes, stack, 0)
    axes.set_title("nd: the best run of its stack on a test string", loc="left")
    cells = axes.get_legend().legend_handles
    axes.legend(handles=cells, frameon=False, fontsize=8, ncols=len(cells), loc="lower right", bbox_to_anchor=(1, 0.97))
