"""Pictures of what stacks do: what is drawn of each kind of stack.

In a notebook, ``Picture.of(draw_runs, stacks)`` is such a picture.
"""

from __future__ import annotations

import math
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from fairseq_stack.errors import UserError
from fairseq_stack.inspection.texts import spelt
from fairseq_stack.modules import InspectedAutomaton, InspectedStack, InspectedStratification
from fairseq_stack.modules.inspected import OPERATIONS
from fairseq_stack.ops.nondeterministic import Step, Transitions
from fairseq_stack.plots.panels import draw_points, draw_weights, hide_unused, mark_largest
from fairseq_stack.plots.stack_drawings import (
    MOST_COLUMNS_WITH_TEXT_BELOW,
    draw_growing_stack,
    draw_shares,
    name_cells,
    width_for,
)
from fairseq_stack.plots.style import figure, grid

if TYPE_CHECKING:  # they need fairseq
    from fairseq_stack.inspection.operations import MeanOperations
    from fairseq_stack.inspection.readings import Named, Readings

MOST_TRANSITIONS = 12
"""A picture shows at most so many transitions."""

MOST_COLUMNS = 24
"""A picture of operations by symbol shows so many symbols, the most frequent ones."""

MOST_SYMBOLS = 10
"""A picture of readings tells so many symbols of a stack apart, the most frequent ones."""

LEAST_SHARE = 0.01
"""A picture warns of a best run that has less of the weight of all runs."""

WARNING = "#D55E00"
"""The colour of such a title."""


def named(layer: str) -> str:
    """A stack in words, such as layer 3 of the decoder (``decoder.layers.2``) or stack 1 of the LSTM."""
    side_and_number = r"(encoder|decoder|encoder\.network)\.(lstm\.stacks|layers)\.(\d+)"
    match = re.fullmatch(rf"{side_and_number}(?:\.loop-(\d+))?(?:\.heads\.(\d+))?", layer)
    if match is None:
        return layer
    side, part, number = match[1].replace("encoder.network", "tagger"), match[2], int(match[3]) + 1
    words = f"layer {number} of the {side}" if part == "layers" else f"stack {number} of the LSTM"
    loop = "" if match[4] is None else f", loop {match[4]}"
    return words + loop + ("" if match[5] is None else f", head {int(match[5]) + 1}")


@dataclass(frozen=True)
class Picture:
    """A picture, which a notebook shows if it is what a cell returns.

    Attributes:
        png: the content of a PNG file.
    """

    png: bytes

    @classmethod
    def of(cls, draw: Callable[..., Any], *arguments: Any) -> Picture:
        """What a function of this module draws for these arguments, which its path follows."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "picture.png")
            draw(*arguments, path)
            return cls(path.read_bytes())

    def _repr_png_(self) -> bytes:
        return self.png


def draw_all_weights(stacks: Sequence[InspectedStack], path: Path, title: str = "") -> None:
    """A panel for each stack: rows are readings, columns pushed vectors; the largest weight of a row is outlined."""
    longest = max(len(stack.inputs) for stack in stacks)
    side = min(4 + 0.15 * longest, 20)
    size = ((side + 1) * len(stacks), side)
    with figure(path, rows=1, columns=len(stacks), size=size, title=title) as panels:
        for axes, stack in zip(panels[0], stacks, strict=True):
            weights = stack.weights.tolist()
            draw_weights(axes, weights, rows=stack.inputs, columns=stack.pushed)
            mark_largest(axes, weights)
            axes.set(title=f"readings of {named(stack.layer)}", xlabel="vector pushed at", ylabel="reading after")


def draw_operations(stacks: Sequence[InspectedStack], path: Path, title: str = "") -> None:
    """What each stack does at each input."""
    panels: list[_Panel] = []
    for stack in stacks:
        given = ", given the whole input" if stack.is_automaton else ""
        shares = stack.operations().T.tolist()
        panels.append(_Panel(stack, shares, tuple(stack.actions), stack.unit, "operation", f"operations{given}"))
        if isinstance(stack, InspectedStratification):
            strengths = stack.strengths.T.tolist()
            panels.append(_Panel(stack, strengths, stack.inputs, "strength", "item pushed at", "items on the stack"))
        if stack.pointers is not None:
            panels.append(_panel_of_pointers(stack, stack.pointers))
    _draw_panels(panels, path, title)


def draw_transitions(stacks: Sequence[InspectedStack], least: float, path: Path, title: str = "") -> None:
    """The most probable transitions of each automaton: over all runs, and as the network gives them.

    Raises:
        UserError: there is no automaton, or no transition that is as probable as ``least`` anywhere.
    """
    automata = [stack for stack in stacks if isinstance(stack, InspectedAutomaton)]
    panels = [panel for stack in automata for panel in _panels_of_transitions(stack, least)]
    if not panels:
        raise UserError(f"--show transitions: expected a nondeterministic stack with a transition of at least {least}")
    _draw_panels(panels, path, title)


def _draw_panels(panels: Sequence[_Panel], path: Path, title: str) -> None:
    heights = [panel.height for panel in panels]
    size = width_for(max(len(panel.stack.inputs) for panel in panels)) + 1.5, sum(heights)
    with figure(path, len(panels), 1, size, heights=heights, title=title) as drawn:
        for (axes,), panel in zip(drawn, panels, strict=True):
            draw_shares(axes, panel.shares, panel.rows, panel.stack.inputs, panel.unit)
            axes.set_title(f"{named(panel.stack.layer)}: {panel.title}", loc="left")
            axes.set(ylabel=panel.ylabel, xlabel="input")


def _panel_of_pointers(stack: InspectedStack, pointers: Tensor) -> _Panel:
    """Between two cells, the pointer has a share in each; the top row is the highest cell that it reaches."""
    cells = torch.arange(math.ceil(pointers.max()), -1, -1)
    shares = (1 - (pointers - cells[:, None]).abs()).clamp(min=0).tolist()
    return _Panel(stack, shares, [str(cell) for cell in cells.tolist()], "share", "cell", "pointer")


@dataclass(frozen=True, eq=False)
class _Panel:
    """A panel of shares of a stack.

    Attributes:
        stack: whose inputs are the columns.
        shares: numbers from 0 to 1, (rows, columns).
        rows: the labels of the rows.
        unit: what the numbers are.
        ylabel: what the rows are.
        title: what the panel shows.
    """

    stack: InspectedStack
    shares: Sequence[Sequence[float]]
    rows: Sequence[str]
    unit: str
    ylabel: str
    title: str

    @property
    def height(self) -> float:
        """In inches, with title and labels."""
        turned = 0.09 * max(map(len, self.stack.inputs))
        return min(1.3 + turned + 0.2 * max(len(self.rows), 3), 14)


def _panels_of_transitions(stack: InspectedAutomaton, least: float) -> list[_Panel]:
    best: dict[Step, float] = {}
    for x in stack.likely_transitions(least):
        best[x.step] = max(best.get(x.step, 0), x.probability)
    most_likely = sorted(best, key=lambda step: -best[step])[:MOST_TRANSITIONS]
    shown = sorted(most_likely, key=lambda step: (OPERATIONS.index(step.operation), step))
    names, panels = [spelt(step) for step in shown], []
    for transitions, title in (
        (stack.posterior, "transitions, given the whole input"),
        (stack.given_top(), "transitions, given state and top"),
    ):
        if shown:
            rows = [_of_step(transitions, step).tolist() for step in shown]
            panels.append(_Panel(stack, rows, names, "probability", "transition", title))
    return panels


def _of_step(transitions: Transitions, step: Step) -> Tensor:
    """The numbers of a transition at each input, (n,)."""
    target = (step.state,) if step.symbol is None else (step.state, step.symbol)
    of_operation: Tensor = getattr(transitions, step.operation)
    return of_operation[(slice(None), *step.source, *target)]


def draw_mean_operations(stacks: Sequence[MeanOperations], path: Path, title: str = "") -> None:
    """What each stack does at each of the most frequent symbols, on average.

    Symbols at which it does the same are next to each other.
    """
    symbols = [stack.symbols[:MOST_COLUMNS] for stack in stacks]
    heights = [1.9 + 0.09 * max(map(len, shown)) for shown in symbols]
    size = width_for(max(map(len, symbols))) + 1.5, sum(heights)
    with figure(path, len(stacks), 1, size, heights=heights, title=title) as panels:
        for (axes,), stack, shown in zip(panels, stacks, symbols, strict=True):
            means = stack.means[: len(shown)].tolist()
            order = sorted(range(len(shown)), key=lambda place: _by_operation(means[place]))
            columns = list(zip(*(means[place] for place in order), strict=True))
            draw_shares(axes, columns, stack.names, [shown[place] for place in order], f"mean {stack.unit}")
            axes.set_title(f"{named(stack.layer)}: operations at {sum(stack.counts):,} inputs", loc="left")
            axes.set(ylabel="operation", xlabel="the most frequent inputs, by their most probable operation")


def _by_operation(means: Sequence[float]) -> tuple[int, float]:
    """A key that sorts means by the largest of them, and then from large to small."""
    largest = max(range(len(means)), key=lambda operation: means[operation])
    return largest, -means[largest]


def draw_runs(stacks: Sequence[InspectedStack], path: Path, title: str = "") -> list[str]:
    """The best runs of each automaton, as stacks that grow and shrink; what each is called, with its share."""
    automata = [stack for stack in stacks if isinstance(stack, InspectedAutomaton)]
    runs = [(stack, number) for stack in automata for number in range(len(stack.runs))]
    if not runs:
        raise UserError("--show runs: expected a nondeterministic stack that forgets nothing and has a run")
    heights = []
    for stack, number in runs:
        highest = max(map(len, stack.runs[number].stacks()))
        heights.append(min(1.9 + 0.24 * highest + 0.09 * max(map(len, stack.inputs)), 16))
    size = width_for(max(len(stack.inputs) for stack, _ in runs)) + 2, sum(heights)
    with figure(path, len(runs), 1, size, heights=heights, title=title) as panels:
        for (axes,), (stack, number) in zip(panels, runs, strict=True):
            draw_run(axes, stack, number)
    return [name_of_run(stack, number) for stack, number in runs]


def draw_run(axes: Any, stack: InspectedAutomaton, number: int, *, with_steps: bool = True) -> None:
    """One of the best runs of an automaton, from 0 on, as a stack that grows and shrinks, with or without its steps."""
    run = stack.runs[number]
    names = ("", *stack.inputs)
    cells = [[(names[item.pushed], item.symbol) for item in content] for content in run.stacks()]
    states = [f"q{run.start.state}", *(f"q{step.state}" for step in run.steps)]
    operations = ["", *(step.operation if step.operation != "replace" else "repl." for step in run.steps)]
    written = [False, *(step.operation != "pop" for step in run.steps)]
    below = [operations, states] if with_steps and len(cells) <= MOST_COLUMNS_WITH_TEXT_BELOW else []
    draw_growing_stack(axes, cells, written, below, stack.inputs)
    name_cells(axes, [f"stack symbol {symbol}" for symbol in range(stack.size[1])])
    colour = WARNING if number == 0 and stack.shares()[0] < LEAST_SHARE else "black"
    axes.set_title(name_of_run(stack, number), loc="left", color=colour, wrap=True)
    label = "input; below the stack after it: operation and state" if below else "input"
    axes.set(xlabel=label, ylabel="height of the stack")


def name_of_run(stack: InspectedAutomaton, number: int) -> str:
    """What one of the best runs is called, from 0 on: with its share, and a warning if even the best has little."""
    which, share = "best run" if number == 0 else f"run {number + 1}", stack.shares()[number]
    warning = "; most of the weight is elsewhere" if number == 0 and share < LEAST_SHARE else ""
    percent = float(f"{100 * share:.2g}")
    return f"{which} of {named(stack.layer)} ({percent:g} % of the weight of all runs{warning})"


def draw_readings(stacks: Sequence[Readings], by: Named, path: Path, title: str = "") -> None:
    """The readings of each stack in two principal components.

    Args:
        stacks: the readings.
        by: how they are labelled.
        path: the file to write.
        title: what the picture says.
    """
    legend = {"input": "last input", "prediction": "predicted with it"}[by]
    rows, columns = grid(len(stacks))
    with figure(path, rows, columns, (6.2 * columns, 4.6 * rows), title=title) as panels:
        for axes, stack in zip(panels.flat, stacks, strict=False):
            counts = Counter(place.symbol for place in stack.places)
            shown = sorted(symbol for symbol, _ in counts.most_common(MOST_SYMBOLS))
            coordinates, shares = stack.components()
            symbols = [place.symbol for place in stack.places]
            draw_points(axes, coordinates.tolist(), symbols, shown, legend)
            first, second = (
                f"principal component {number} ({100 * share:.0f} % of the variance)"
                for number, share in enumerate(shares.tolist(), start=1)
            )
            axes.set(xlabel=first, ylabel=second)
            axes.set_title(f"{named(stack.layer)}: {len(symbols):,} readings", loc="left")
        hide_unused(panels, len(stacks))
