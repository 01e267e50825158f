"""``fairseq-stack inspect CHECKPOINT``: what the stacks of a trained model look at."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fairseq_stack.errors import UserError
from fairseq_stack.files import written_whole
from fairseq_stack.plots.style import FORMATS as PICTURES

from .arguments import Subparsers
from .checkpoint import add_checkpoint, load_checkpoint

if TYPE_CHECKING:
    from fairseq_stack.hub.interface import Hub, TransductionHub
    from fairseq_stack.inspection.neural_stack import StackRun
    from fairseq_stack.inspection.stack_weights import StackWeights

DESCRIPTION = """\
Show which pushed vectors the nondeterministic stack attention of a trained model
looks at while it reads a sentence: a picture with a panel for each layer, or the
numbers as JSON. Of a neural stack, show what it pops, pushes and reads in each step,
and the positions of its buffers. Give raw text if fairseq-stack prepare cut the
model's data into pieces, and tokens separated by blanks otherwise."""

EXAMPLE = """\
examples:
  fairseq-stack inspect checkpoints/mt --text "der Hund schläft ." --output w.png
  fairseq-stack inspect checkpoints/reversal --text "0 1 1 2 2 2" --output r.png"""

FORMATS = (".json", *PICTURES)


def add_parser(subparsers: Subparsers) -> None:
    """Declare the subcommand."""
    parser = subparsers.add_parser(
        "inspect", help="show what the stacks of a trained model look at", description=DESCRIPTION, epilog=EXAMPLE
    )
    add_checkpoint(parser)
    parser.add_argument("--text", metavar="SENTENCE", required=True, help="the sentence that the model reads")
    parser.add_argument(
        "--translation",
        metavar="SENTENCE",
        help="the translation that the decoder reads (default: the model's own translation)",
    )
    parser.add_argument(
        "--output", metavar="FILE", type=Path, required=True, help=f"file to write ({', '.join(FORMATS)})"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the picture or the numbers."""
    if args.output.suffix not in FORMATS:
        raise UserError(f"--output {args.output}: expected a name that ends with one of {', '.join(FORMATS)}")
    hub = load_checkpoint(args.checkpoint, args.data)
    from fairseq_stack.hub.interface import TransductionHub

    if isinstance(hub, TransductionHub):
        _inspect_neural_stack(hub, args)
    else:
        _inspect_attention(hub, args)
    print(args.output)
    return 0


def _inspect_attention(hub: Hub, args: argparse.Namespace) -> None:
    from fairseq_stack.inspection.stack_weights import stack_weights

    layers = stack_weights(hub, args.text, args.translation)
    if not layers:
        raise UserError(f"{args.checkpoint} has no nondeterministic stack attention")
    if args.output.suffix == ".json":
        _write_json(args.output, as_json(layers))
    else:
        draw(layers, args.output)


def _inspect_neural_stack(hub: TransductionHub, args: argparse.Namespace) -> None:
    from fairseq_stack.inspection.neural_stack import stack_run

    if args.translation is not None:
        raise UserError("--translation: a neural stack writes its output itself; leave the option out")
    run = stack_run(hub, args.text)
    if args.output.suffix == ".json":
        _write_json(args.output, dataclasses.asdict(run))
    else:
        draw_run(run, args.output)


def _write_json(path: Path, content: object) -> None:
    with written_whole(path) as file:
        file.write(f"{json.dumps(content, indent=2, ensure_ascii=False)}\n".encode())


def as_json(layers: Sequence[StackWeights]) -> list[dict[str, object]]:
    """The numbers, a dictionary for each layer."""
    return [{"layer": found.layer, "inputs": list(found.inputs), "weights": found.weights.tolist()} for found in layers]


def draw(layers: Sequence[StackWeights], path: Path) -> None:
    """Draw a panel for each layer: rows are readings, columns are pushed vectors."""
    from fairseq_stack.plots.panels import draw_weights
    from fairseq_stack.plots.style import figure, require_matplotlib

    require_matplotlib()
    longest = max(len(found.inputs) for found in layers)
    side = min(4 + 0.15 * longest, 20)
    size = ((side + 1) * len(layers), side)
    with figure(path, rows=1, columns=len(layers), size=size, file_format=path.suffix[1:]) as panels:
        for axes, found in zip(panels[0], layers, strict=True):
            draw_weights(axes, found.weights.tolist(), rows=found.inputs, columns=("bottom", *found.inputs))
            axes.set(title=found.layer, xlabel="vector pushed at", ylabel="reading after")


def draw_run(run: StackRun, path: Path) -> None:
    """Draw strengths, vectors and readings as colours, a column for each step; of buffers the positions, too."""
    from fairseq_stack.plots.panels import draw_curves, draw_weights
    from fairseq_stack.plots.style import figure, require_matplotlib

    require_matplotlib()
    numbers = [str(step) for step in range(1, len(run.pops) + 1)]
    steps, axis = (list(run.inputs), "input") if run.buffers is None else (numbers, "time step")
    strengths = {"pop": run.pops, "push": run.pushes}
    if run.buffers is not None:
        strengths |= {"input pop": run.buffers.input_pops, "output push": run.buffers.output_pushes}
    sides = {"pushed vector": run.vectors, "reading": run.readings}
    count = len(sides) + (1 if run.buffers is None else 2)
    size = (min(4 + 0.2 * len(steps), 20), 2.2 * count)
    with figure(path, rows=count, columns=1, size=size, file_format=path.suffix[1:]) as panels:
        first, *others = panels[:, 0]
        draw_weights(first, list(strengths.values()), rows=list(strengths), columns=steps, label="strength")
        first.set(title=f"output: {' '.join(run.outputs)}", xlabel=axis)
        for axes, (name, vectors) in zip(others, sides.items(), strict=False):
            components = [str(component) for component in range(1, len(vectors[0]) + 1)]
            draw_weights(axes, list(zip(*vectors, strict=True)), rows=components, columns=steps, label="value")
            axes.set(xlabel=axis, ylabel=name)
        if run.buffers is not None:
            positions = {"read": run.buffers.input_positions, "written": run.buffers.output_positions}
            draw_curves(others[-1], {name: dict(enumerate(values, start=1)) for name, values in positions.items()})
            others[-1].set(xlabel=axis, ylabel="symbols")
            others[-1].legend(frameon=False)
