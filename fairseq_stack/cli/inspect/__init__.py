"""``fairseq-stack inspect CHECKPOINT``: what the stacks of a trained model do."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fairseq_stack.cli.arguments import Subparsers
from fairseq_stack.cli.checkpoint import add_checkpoint, load_checkpoint
from fairseq_stack.errors import UserError
from fairseq_stack.files import written_whole
from fairseq_stack.plots.style import FORMATS as PICTURES

from . import parses
from .neural_stack import inspect_neural_stack

if TYPE_CHECKING:
    from fairseq_stack.hub.interface import Hub
    from fairseq_stack.inspection.stacks import InspectedStack

DESCRIPTION = """\
Show what the stacks of a trained model do while it reads a sentence: a picture, or
the numbers as JSON. Of a neural stack, show what it pops, pushes and reads in each
step, and the positions of its buffers. Of a model that parses, show its stack tape,
the parse as a tree, or the attention to each token. Give raw text if fairseq-stack
prepare cut the model's data into pieces, and tokens separated by blanks otherwise."""

EXAMPLE = """\
examples:
  fairseq-stack inspect checkpoints/mt --text "der Hund schläft ." --output w.png
  fairseq-stack inspect checkpoints/lm --text "a b b a" --show runs --output r.svg
  fairseq-stack inspect checkpoints/reversal --text "0 1 1 2 2 2" --output r.png
  fairseq-stack inspect checkpoints/pushdown --text "the dog barks" --output t.png"""

SHOWN = ("weights", "operations", "runs")
TEXTS = (".gv", ".tex", ".tsv")
FORMATS = (".json", *PICTURES, *TEXTS)


def add_parser(subparsers: Subparsers) -> None:
    """Declare the subcommand."""
    parser = subparsers.add_parser(
        "inspect", help="show what the stacks of a trained model do", description=DESCRIPTION, epilog=EXAMPLE
    )
    add_checkpoint(parser)
    parser.add_argument("--text", metavar="SENTENCE", required=True, help="the sentence that the model reads")
    parser.add_argument(
        "--translation",
        metavar="SENTENCE",
        help="the translation that the decoder reads (default: the model's own translation)",
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        type=Path,
        required=True,
        help=f"file to write: the numbers (.json), a picture ({', '.join(PICTURES)}); of a nondeterministic stack, the "
        "likely transitions (.tsv, .tex) or what may lie on it in the end, as a graph for Graphviz (.gv); of a model "
        "that parses, the parse in brackets (.txt)",
    )
    parser.add_argument(
        "--layer",
        metavar="NAME",
        help="the stack to show, such as decoder.layers.2, or 'all' (default: the nondeterministic stacks, or all "
        "stacks if there is none)",
    )
    parser.add_argument(
        "--show",
        choices=(*SHOWN, *parses.SHOWN),
        help="what a picture shows: the weights of the pushed vectors in the readings (the default); the operations at "
        "each input; or the best runs of a nondeterministic stack. Of a model that parses: the stack tape (the "
        "default); the parse as a tree; or the attention to each token",
    )
    parser.add_argument(
        "--runs", metavar="K", type=int, default=1, help="how many of the best runs, or parses (default: 1)"
    )
    parser.add_argument(
        "--least",
        metavar="P",
        type=float,
        default=0.1,
        help="leave out transitions that are less probable everywhere (default: %(default)s)",
    )
    parses.add_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the picture, the numbers or the text."""
    if args.output.suffix not in parses.FORMATS:
        _require_format(args.output)
    if args.runs < 1:
        raise UserError(f"--runs: expected at least 1, got {args.runs}")
    if not 0 <= args.least <= 1:
        raise UserError(f"--least: expected a number from 0 to 1, got {args.least}")
    hub = load_checkpoint(args.checkpoint, args.data)
    from fairseq_stack.hub.interface import TransductionHub
    from fairseq_stack.hub.parses import parses_sentences

    if parses_sentences(hub):
        parses.inspect_parsed(hub, args)
    else:
        parses.refuse_options(args)
        _require_format(args.output)
        if isinstance(hub, TransductionHub):
            inspect_neural_stack(hub, args)
        else:
            inspect_sentence(hub, args)
    print(args.output)
    return 0


def _require_format(path: Path) -> None:
    if path.suffix not in FORMATS:
        raise UserError(f"--output {path}: expected a name that ends with one of {', '.join(FORMATS)}")


def inspect_sentence(hub: Hub, args: argparse.Namespace) -> None:
    """Write what the stacks of a language model or a translation model do."""
    from fairseq_stack.inspection.stacks import inspect_stacks

    stacks = chosen(inspect_stacks(hub, args.text, args.translation, num_runs=args.runs), args.checkpoint, args.layer)
    if args.output.suffix == ".json":
        text = f"{json.dumps([stack.as_json() for stack in stacks], indent=2, ensure_ascii=False)}\n"
    elif args.output.suffix in TEXTS:
        text = as_text(stacks, args.output.suffix, args.least)
    else:
        draw(stacks, args.show or SHOWN[0], args.least, args.output)
        return
    with written_whole(args.output) as file:
        file.write(text.encode())


def chosen(stacks: Sequence[InspectedStack], checkpoint: Path, layer: str | None) -> Sequence[InspectedStack]:
    """The stacks that ``--layer`` names.

    Raises:
        UserError: there is none.
    """
    from fairseq_stack.inspection.stacks import InspectedAutomaton

    if not stacks:
        raise UserError(f"{checkpoint} has no nondeterministic stack attention, and no other stack")
    if layer is None:
        return [stack for stack in stacks if isinstance(stack, InspectedAutomaton)] or stacks
    found = [stack for stack in stacks if layer in ("all", stack.layer)]
    if not found:
        names = ", ".join(stack.layer for stack in stacks)
        raise UserError(f"--layer {layer}: expected 'all' or a stack of the model, which are {names}")
    return found


def as_text(stacks: Sequence[InspectedStack], suffix: str, least: float) -> str:
    """The likely transitions, or the contents of the stack in the end, of the only automaton."""
    from fairseq_stack.inspection import texts
    from fairseq_stack.inspection.stacks import InspectedAutomaton

    automata = [stack for stack in stacks if isinstance(stack, InspectedAutomaton)]
    if len(automata) != 1:
        names = ", ".join(stack.layer for stack in automata) or "none"
        raise UserError(
            f"--output with {suffix}: expected one nondeterministic stack, got {names}; choose one by --layer"
        )
    (stack,) = automata
    if suffix == ".tsv":
        return texts.transitions_as_tsv(stack, least)
    if suffix == ".tex":
        return texts.transitions_as_latex(stack, least)
    return texts.contents_as_graphviz(stack.contents(len(stack.inputs), least), stack.inputs)


def draw(stacks: Sequence[InspectedStack], shown: str, least: float, path: Path) -> None:
    """Draw what ``--show`` names."""
    from fairseq_stack.cli.inspect import pictures

    if shown == "weights":
        pictures.draw_all_weights(stacks, path)
    elif shown == "operations":
        pictures.draw_operations(stacks, least, path)
    else:
        pictures.draw_runs(stacks, path)
