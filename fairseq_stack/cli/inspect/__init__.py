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
from fairseq_stack.files import require_writable, written_whole
from fairseq_stack.plots.style import FORMATS as PICTURES
from fairseq_stack_preprocess.progress import say

from . import parses
from .layers import chosen
from .neural_stack import inspect_neural_stack
from .operations import inspect_operations
from .readings import add_readings, inspect_readings
from .sentences import add_sentences, check_sentences, folder_of_data, reads_many, sentences_of

if TYPE_CHECKING:
    from fairseq_stack.hub.interface import Hub
    from fairseq_stack.inspection.stacks import InspectedStack

DESCRIPTION = """\
Show what the stacks of a trained model do while it reads a sentence: a picture, or
the numbers as JSON. Of a neural stack, show what it pops, pushes and reads in each
step, and the positions of its buffers. Of a model that parses, show its stack tape,
the parse as a tree, or the attention to each token. Give raw text if fairseq-stack
prepare cut the model's data into pieces, and tokens separated by blanks otherwise:
words of the dictionary, or <unk> for any other word."""

EXAMPLE = """\
examples:
  fairseq-stack inspect checkpoints/mt --text "der Hund schläft." --output w.png
  fairseq-stack inspect checkpoints/lm --text "a b b a" --show runs --output r.svg
  fairseq-stack inspect checkpoints/mt --data data/mt --split valid --line 12 \\
      --output w.json
  fairseq-stack inspect checkpoints/lm --data data/lm --split valid \\
      --show readings --by prediction --output readings.png
  fairseq-stack inspect checkpoints/lm --data data/lm --split valid \\
      --show operations --output operations.tsv
  fairseq-stack inspect checkpoints/reversal --text "0 1 1 2 2 2" --output r.png
  fairseq-stack inspect checkpoints/pushdown --text "the dog barks" --output t.png"""

SHOWN = ("weights", "operations", "runs", "readings")
TEXTS = (".gv", ".tex", ".tsv")
FORMATS = (".json", *PICTURES, *TEXTS)


def add_parser(subparsers: Subparsers) -> None:
    """Declare the subcommand."""
    parser = subparsers.add_parser(
        "inspect", help="show what the stacks of a trained model do", description=DESCRIPTION, epilog=EXAMPLE
    )
    add_checkpoint(parser)
    add_sentences(parser)
    parser.add_argument(
        "--output",
        metavar="FILE",
        type=Path,
        required=True,
        help=f"file to write: the numbers (.json), a picture ({', '.join(PICTURES)}); of a nondeterministic stack, the "
        "likely transitions (.tsv, .tex) or what may lie on it in the end, as a graph for Graphviz (.gv); of the "
        "operations in many sentences, a table (.tsv); of a model that parses, the parse in brackets (.txt)",
    )
    parser.add_argument(
        "--layer",
        metavar="NAME",
        help="the stack to show, such as decoder.layers.2, or 'all' (default: the nondeterministic stacks, or all "
        "stacks if there is none)",
    )
    parser.add_argument(
        "--show",
        metavar="WHAT",
        choices=(*SHOWN, *parses.SHOWN),
        help=f"what a picture shows ({', '.join((*SHOWN, *parses.SHOWN))}): the weights of the pushed vectors in the "
        "readings (the default); the operations at each input, or without --line their means at each symbol of many "
        "sentences; the best runs of a nondeterministic stack; or the readings of many sentences in their two "
        "principal components, by symbol. Of a model that parses: the stack tape (the default); the parse as a tree; "
        "or the attention to each token",
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
    add_readings(parser)
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
    check_sentences(args)
    require_writable(args.output)
    hub = load_checkpoint(args, folder_of_data(args.data))
    from fairseq_stack.hub.interface import TransductionHub
    from fairseq_stack.hub.parses import parses_sentences

    if parses_sentences(hub):
        parses.inspect_parsed(hub, args)
    else:
        parses.refuse_options(args)
        _require_format(args.output)
        if isinstance(hub, TransductionHub):
            inspect_neural_stack(hub, args)
        elif args.show == "readings":
            inspect_readings(hub, args)
        elif reads_many(args):
            inspect_operations(hub, args)
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

    (sentence,) = sentences_of(hub, args)
    stacks = chosen(inspect_stacks(hub, sentence, num_runs=args.runs), args.checkpoint, args.layer)
    if args.output.suffix == ".json":
        text = f"{json.dumps([stack.as_json() for stack in stacks], indent=2, ensure_ascii=False)}\n"
    elif args.output.suffix in TEXTS:
        text = as_text(stacks, args.output.suffix, args.least)
    else:
        draw(stacks, args.show or SHOWN[0], args.least, args.output)
        return
    with written_whole(args.output) as file:
        file.write(text.encode())


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
    """Draw what ``--show`` names; standard error also has the share of each run."""
    from fairseq_stack.inspection import pictures
    from fairseq_stack.inspection.stacks import InspectedAutomaton

    if shown == "weights":
        pictures.draw_all_weights(stacks, path)
    elif shown == "operations":
        pictures.draw_operations(stacks, least, path)
    else:
        pictures.draw_runs(stacks, path)
        for stack in stacks:
            if isinstance(stack, InspectedAutomaton):
                for number in range(len(stack.runs)):
                    say(pictures.name_of_run(stack, number))
