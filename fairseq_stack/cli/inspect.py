"""``fairseq-stack inspect CHECKPOINT``: what the stacks of a trained model look at."""

from __future__ import annotations

import argparse
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
    from fairseq_stack.inspection.stack_weights import StackWeights

DESCRIPTION = """\
Show which pushed vectors the nondeterministic stack attention of a trained model
looks at while it reads a sentence: a picture with a panel for each layer, or the
numbers as JSON. Give raw text if fairseq-stack prepare cut the model's data into
pieces, and tokens separated by blanks otherwise."""

EXAMPLE = """\
example:
  fairseq-stack inspect checkpoints/mt --text "der Hund schläft ." --output w.png"""

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
    from fairseq_stack.inspection.stack_weights import stack_weights

    layers = stack_weights(hub, args.text, args.translation)
    if not layers:
        raise UserError(f"{args.checkpoint} has no nondeterministic stack attention")
    if args.output.suffix == ".json":
        with written_whole(args.output) as file:
            file.write(f"{json.dumps(as_json(layers), indent=2, ensure_ascii=False)}\n".encode())
    else:
        draw(layers, args.output)
    print(args.output)
    return 0


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
