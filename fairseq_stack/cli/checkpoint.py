"""``fairseq-stack COMMAND CHECKPOINT [--data DIR]``: how every subcommand that reads a model names it."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairseq_stack.hub.interface import Hub


def add_checkpoint(parser: argparse.ArgumentParser) -> None:
    """Declare CHECKPOINT and ``--data``."""
    parser.add_argument(
        "checkpoint", metavar="CHECKPOINT", type=Path, help="a checkpoint, or a folder with checkpoint_best.pt in it"
    )
    parser.add_argument(
        "--data", metavar="DIR", type=Path, help="the folder with the dictionaries (default: the checkpoint's folder)"
    )


def load_checkpoint(args: argparse.Namespace) -> Hub:
    """Load the model that the arguments name.

    Raises:
        UserError: see :func:`fairseq_stack.hub.interface.load`.
    """
    logging.basicConfig(level=logging.WARNING)  # before fairseq, which would log everything
    from fairseq_stack.hub.interface import load

    return load(args.checkpoint, args.data)
