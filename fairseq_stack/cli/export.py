"""``fairseq-stack export CHECKPOINT FOLDER``: a trained model for Hugging Face transformers."""

from __future__ import annotations

import argparse
from pathlib import Path

from .checkpoint import add_checkpoint, load_checkpoint

SUMMARY = "write a model for Hugging Face transformers"

DESCRIPTION = """\
Write a folder with a trained model that Hugging Face transformers loads without
fairseq: configuration, parameters, tokenizer, and a README with the ways to load it.
Stack transformers, for language modelling and translation, and stack LSTMs can be
exported."""

EXAMPLE = """\
example:
  fairseq-stack export checkpoints/checkpoint_best.pt exported"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_checkpoint(parser)
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="the folder to write; it must not exist")


def run(args: argparse.Namespace) -> int:
    from transformers.utils.logging import disable_progress_bar

    hub = load_checkpoint(args, args.data)
    from fairseq_stack.huggingface.export import export

    disable_progress_bar()
    export(hub, args.folder)
    print(args.folder)
    return 0
