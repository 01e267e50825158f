"""The stack automaton of DuSell & Chiang (2020), Fig. 2: all stacks that a pushdown automaton for ww^R may have.

python scripts/experiments/automaton_picture.py PICTURE [STRING]

STRING consists of 0 and 1 (default: 0110, as in the paper). A path from the start to a state (j, q, x) spells a stack
after j symbols, from the bottom to the top x. An edge is an inner weight gamma[i -> j][q, x -> r, y] that is not 0.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

from fairseq_stack.plots.style import figure

BOTTOM = "⊥"
COLOURS = {"push": "#0072B2", "pop": "#D55E00"}


class State(NamedTuple):
    """A state of the stack automaton: position, state of the pushdown automaton, top of the stack."""

    position: int
    state: str
    top: str


START = State(-1, "", "")


class Edge(NamedTuple):
    """An edge, whose label is the top of its target."""

    source: State
    target: State


def stack_automaton(string: str) -> dict[Edge, str]:
    """The reachable edges of the stack automaton of the paper's pushdown automaton, and the operations that made them.

    In q1 it pushes every symbol; in q1 and q2 it pops a symbol that equals its top, and goes to q2.
    """
    edges = {Edge(START, State(0, "q1", BOTTOM)): "push"}  # Axiom
    for j, symbol in enumerate(string, 1):
        before = [edge for edge in edges if edge.target.position == j - 1]
        for source in {edge.target for edge in before if edge.target.state == "q1"}:
            edges[Edge(source, State(j, "q1", symbol))] = "push"
        for popped in before:
            if popped.target.top == symbol:
                for below in [edge for edge in edges if edge.target == popped.source]:
                    edges[Edge(below.source, State(j, "q2", below.target.top))] = "pop"
    return edges


def draw(axes: Any, edges: dict[Edge, str], string: str) -> None:
    """The automaton, with the position from left to right and the height of the stack upwards."""
    heights = {START: 0}
    for edge in edges:  # sources come before their targets
        heights.setdefault(edge.target, heights[edge.source] + 1)
    for edge, operation in edges.items():
        start, end = ((state.position, heights[state]) for state in edge)
        arrow = {"arrowstyle": "-|>", "color": COLOURS[operation], "shrinkA": 26, "shrinkB": 26, "linewidth": 1.5}
        axes.annotate("", end, start, arrowprops=arrow)
        share = 0.5 / (end[0] - start[0])  # of the way back from the target
        label = end[0] - 0.5, end[1] - share * (end[1] - start[1]) + 0.12
        axes.text(*label, edge.target.top, color=COLOURS[operation], ha="center", va="bottom", fontsize=11)
    box = {"boxstyle": "round", "facecolor": "white", "edgecolor": "0.3"}
    for state, height in heights.items():
        name = "start" if state == START else f"{state.position}, {state.state}, {state.top}"
        axes.text(state.position, height, name, ha="center", va="center", bbox=box, fontsize=9)
    axes.set(xlim=(-1.5, len(string) + 0.5), ylim=(-0.5, max(heights.values()) + 0.5), ylabel="height of the stack")
    axes.set_xticks(range(len(string) + 1), ["", *string])
    axes.set_xlabel("symbol read")
    axes.yaxis.get_major_locator().set_params(integer=True)
    for operation, colour in COLOURS.items():
        axes.plot([], [], color=colour, label=f"edge made by a {operation}")
    axes.legend(frameon=False, loc="upper left")


def main(picture: str, string: str = "0110") -> None:
    """Draw the picture."""
    edges = stack_automaton(string)
    whole = any(target == State(len(string), "q2", BOTTOM) for _, target in edges)
    with figure(Path(picture), 1, 1, (1.6 * len(string) + 2, 4.5), Path(picture).suffix[1:]) as panels:
        draw(panels[0, 0], edges, string)
        meaning = "one is empty again, so it is $ww^R$" if whole else "none is empty, so it is not $ww^R$"
        panels[0, 0].set_title(f"All stacks of an automaton for $ww^R$ after {string}: {meaning}", loc="left")


if __name__ == "__main__":
    main(*sys.argv[1:])
