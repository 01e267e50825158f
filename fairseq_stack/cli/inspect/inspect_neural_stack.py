"""``fairseq-stack inspect`` of a neural stack: what it pops, pushes and reads in each step."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairseq_stack.errors import UserError

from .sentence_options import refuse_unused, sentences_of

if TYPE_CHECKING:
    from fairseq_stack.hub.interface import TransductionHub
    from fairseq_stack.inspection.neural_stack import StackRun


def inspect_neural_stack(hub: TransductionHub, args: argparse.Namespace) -> dict[str, Any] | None:
    """The numbers to write; None if a picture is drawn."""
    from fairseq_stack.inspection.neural_stack import stack_run

    refuse_unused(args, "a neural stack")
    if args.output.suffix in (".gv", ".tsv"):
        raise UserError(f"--output with {args.output.suffix}: expected .json or a picture of a neural stack")
    (sentence,) = sentences_of(hub, args)
    run = stack_run(hub, sentence)
    if args.output.suffix == ".json":
        return dataclasses.asdict(run)
    draw_run(run, args.output, args.title)
    return None


def draw_run(run: StackRun, path: Path, title: str) -> None:
    """Draw strengths, vectors and readings as colours, a column for each step; and the positions of buffers."""
    from fairseq_stack.plots.panels import draw_weights, literal
    from fairseq_stack.plots.style import figure, style

    numbers = [str(step) for step in range(1, len(run.pops) + 1)]
    steps, axis = (list(run.inputs), "input") if run.buffers is None else (numbers, "time step")
    strengths = {"pop": run.pops, "push": run.pushes}
    if run.buffers is not None:
        strengths |= {"input pop": run.buffers.input_pops, "output push": run.buffers.output_pushes}
    sides = {"pushed vector": run.vectors, "reading": run.readings}
    count = len(sides) + (1 if run.buffers is None else 2)
    size = (min(4 + 0.2 * len(steps), 20), 2.2 * count)
    with figure(path, rows=count, columns=1, size=size, title=title) as panels:
        first, *others = panels[:, 0]
        draw_weights(first, list(strengths.values()), rows=list(strengths), columns=steps, label="strength")
        first.set(title=literal(f"output: {' '.join(run.outputs)}"), xlabel=axis)
        for axes, (name, vectors) in zip(others, sides.items(), strict=False):
            components = [str(component) for component in range(1, len(vectors[0]) + 1)]
            draw_weights(axes, list(zip(*vectors, strict=True)), rows=components, columns=steps, label="value")
            axes.set(xlabel=axis, ylabel=name)
        if run.buffers is not None:
            positions = {"read": run.buffers.input_positions, "written": run.buffers.output_positions}
            for number, (name, values) in enumerate(positions.items()):
                others[-1].plot(range(1, len(values) + 1), values, label=name, **style(number))
            others[-1].set(xlabel=axis, ylabel="symbols")
            others[-1].legend(frameon=False)
