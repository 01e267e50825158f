"""The picture of an experiment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairseq_stack.evaluation.cfl_comparison import Labelled
from fairseq_stack.plots.panels import draw_bars
from fairseq_stack.plots.style import figure, styles_of

from ..plot.lengths import draw_panel
from .experiment import STRING_SCORES, Experiment, model_names

if TYPE_CHECKING:
    from fairseq_stack.modules import InspectedAutomaton


def draw(experiment: Experiment, stack: InspectedAutomaton, path: Path) -> None:
    """Draw the experiment into a file, whose name ends with the format (.png, .svg, ...).

    The panels: the cross-entropy difference by length, the exact match of translations by depth, and below both of them
    the best run of a nondeterministic stack.
    """
    with figure(path, rows=2, columns=2, size=(10, 7), file_format=path.suffix[1:]) as panels:
        draw_difference_by_length(panels[0, 0], experiment)
        draw_exact_match_by_depth(panels[0, 1], experiment)
        draw_best_run(joined(panels[1]), stack)


def joined(row: Any) -> Any:
    """One panel in the place of a row of panels."""
    drawn, place = row[0].figure, row[0].get_subplotspec()
    for axes in row:
        axes.remove()
    return drawn.add_subplot(place.get_gridspec()[place.rowspan.start, :])


def draw_difference_by_length(axes: Any, experiment: Experiment) -> None:
    """The cross-entropy difference on the test strings against their length."""
    names = model_names()
    models = {names[kind]: [Labelled(kind, STRING_SCORES, result.scores)] for kind, result in experiment.dyck.items()}
    draw_panel(axes, models, styles_of(models), log=False)
    axes.set(title="Language modelling of Dyck strings", xlabel="length", ylabel="nats a token above the lower bound")
    axes.legend(facecolor="white", framealpha=1, edgecolor="none", loc="upper left")  # on the shaded lengths


def draw_exact_match_by_depth(axes: Any, experiment: Experiment) -> None:
    """The share of test sentences translated without a mistake against their nesting, as groups of bars."""
    percent = {
        kind: {depth: 100 * share for depth, share in result.exact_match_by_depth.items()}
        for kind, result in experiment.translation.items()
    }
    draw_bars(axes, percent)
    axes.set_yticks(range(0, 101, 20))
    axes.set_ylim(0, 118)  # room for the legend
    axes.set(title="Nested translation", xlabel="depth of nesting", ylabel="exact translations (%)")
    axes.legend(frameon=False, ncols=3, loc="upper right", bbox_to_anchor=(1, 1.02))


def draw_best_run(axes: Any, stack: InspectedAutomaton) -> None:
    """The best run of a stack, which grows and shrinks."""
    from fairseq_stack.inspection.pictures import draw_run  # loads torch

    draw_run(axes, stack, 0)
    axes.set_title("nd: the best run of its stack on a test string", loc="left")
    cells = axes.get_legend().legend_handles
    axes.legend(handles=cells, frameon=False, fontsize=8, ncols=len(cells), loc="lower right", bbox_to_anchor=(1, 0.97))
