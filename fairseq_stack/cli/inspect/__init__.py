"""``fairseq-stack inspect CHECKPOINT``: what the stacks of a trained model do.

Begin with :func:`run`, which loads the model and asks one of three functions for what is to be written, by the model:
:func:`.inspect_stacks.inspect_stacks` for stacks as layers or in an LSTM (one sentence, means of operations or readings
of many), :func:`.inspect_neural_stack.inspect_neural_stack` for the networks of Hao et al. (2018), and
:func:`.inspect_parses.inspect_parsed` for models that parse. Each declares and checks the options that only its models
have. :mod:`.sentence_options` has those that all share: which sentences are read.

What is computed and drawn is in :mod:`fairseq_stack.inspection`. Everything that loads torch is imported in functions,
so that ``fairseq-stack --help`` starts at once.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from fairseq_stack.cli.arguments import add_number
from fairseq_stack.cli.checkpoint import add_checkpoint, load_checkpoint
from fairseq_stack.errors import UserError
from fairseq_stack.files import require_writable, written_whole
from fairseq_stack.plots.style import FORMATS as PICTURES

from . import inspect_parses, inspect_stacks
from .inspect_neural_stack import inspect_neural_stack
from .sentence_options import add_sentences, check_sentences

SUMMARY = "show what the stacks of a trained model do"

DESCRIPTION = """\
Show what the stacks of a trained model do while it reads a sentence, as a picture or
as numbers in JSON. For a neural stack, show what it pops, pushes and reads in each
step, and the positions of its buffers. For a model that parses, show its stack tape,
the parse as a tree, or the attention to each token. Give raw text if fairseq-stack
prepare split the model's data into pieces, and space-separated tokens otherwise:
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

SHOWN = (*inspect_stacks.SHOWN, *inspect_parses.SHOWN)
FORMATS = (".json", *PICTURES, *inspect_stacks.TEXTS)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_checkpoint(parser)
    add_sentences(parser)
    parser.add_argument(
        "--output",
        metavar="FILE",
        type=Path,
        required=True,
        help=f"file to write: the numbers (.json), a picture ({', '.join(PICTURES)}); for a nondeterministic stack, "
        "the likely transitions (.tsv) or its possible final contents, as a graph for Graphviz (.gv); for "
        "the operations in many sentences, a table (.tsv); for models that parse, the parse in brackets (.txt)",
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
        choices=SHOWN,
        help=f"what a picture shows ({', '.join(SHOWN)}): the weights of the pushed vectors in the stack readings "
        "(the default); the operations at each token, or without --line their means at each symbol of many "
        "sentences; the most probable transitions or the best runs of a nondeterministic stack; or the stack readings "
        "of many sentences in their first two principal components, by symbol. For models that parse: the stack tape "
        "(the default); the parse as a tree; or the attention to each token",
    )
    parser.add_argument(
        "--title", metavar="TEXT", default="", help="message of a picture, above its panels; $ begins a formula"
    )
    add_number(parser, "--runs", "number of best runs or parses (default: 1)", least=1, most=100, metavar="K")
    parser.add_argument(
        "--least",
        metavar="P",
        type=float,
        help=f"leave out transitions that are always less probable than this (default: {inspect_stacks.LEAST})",
    )
    inspect_stacks.add_options(parser)
    inspect_parses.add_options(parser)


def run(args: argparse.Namespace) -> int:
    if args.output.suffix not in inspect_parses.FORMATS:
        _require_format(args.output)
    if args.least is not None and not 0 <= args.least <= 1:
        raise UserError(f"--least: expected a number from 0 to 1, got {args.least}")
    check_sentences(args)
    require_writable(args.output)
    hub = load_checkpoint(args, args.data)
    from fairseq_stack.models import BufferedNeuralStackModel, NeuralStackModel

    if hub.parses_sentences:
        content: Any = inspect_parses.inspect_parsed(hub, args)
    else:
        _require_format(args.output)
        is_neural_stack = isinstance(hub.models[0], NeuralStackModel | BufferedNeuralStackModel)
        content = (inspect_neural_stack if is_neural_stack else inspect_stacks.inspect_stacks)(hub, args)
    if content is not None:
        if args.title:
            raise UserError(f"--title has no effect: {args.output} is not a picture")
        text = content if isinstance(content, str) else f"{json.dumps(content, indent=2, ensure_ascii=False)}\n"
        with written_whole(args.output) as file:
            file.write(text.encode())
    print(args.output)
    return 0


def _require_format(path: Path) -> None:
    if path.suffix not in FORMATS:
        raise UserError(f"--output {path}: expected a name that ends with one of {', '.join(FORMATS)}")
