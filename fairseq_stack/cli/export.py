"""``fairseq-stack export CHECKPOINT FOLDER``: a trained model for Hugging Face transformers."""

from __future__ import annotations

import argparse
from pathlib import Path

from .arguments import Subparsers
from .checkpoint import add_checkpoint, load_checkpoint

DESCRIPTION = """\
Write a folder with a trained model that Hugging Face transformers loads without
fairseq: configuration, parameters, tokenizer, and a README with the ways to load it.
Stack transformers, for language modelling and translation, and stack LSTMs can be
exported."""

EXAMPLE = """\
example:
  fairseq-stack export checkpoints/checkpoint_best.pt exported"""


def add_parser(subparsers: Subparsers) -> None:
    """Declare the subcommand."""
    parser = subparsers.add_parser(
        "export", help="write a model for Hugging Face transformers", description=DESCRIPTION, epilog=EXAMPLE
    )
    add_checkpoint(parser)
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="the folder to write; it must not exist")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the folder."""
    from transformers.utils.logging import disable_progress_bar

    hub = load_checkpoint(args, args.data)
    from fairseq_stack.huggingface.export import export

    disable_progress_bar()
    export(hub, args.folder)
    print(args.folder)
    return 0
