"""``fairseq-stack COMMAND CHECKPOINT [--data DIR]``: how every subcommand that reads a model names it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from fairseq_stack.evaluation.results import Model
    from fairseq_stack.hub.interface import Hub

AnyHub = TypeVar("AnyHub", bound="Hub")


def add_checkpoint(parser: argparse.ArgumentParser, corpus: str | None = None) -> None:
    """Declare CHECKPOINT, ``--data`` and ``--user-dir``.

    Args:
        parser: the parser of the command.
        corpus: the help of ``--data``, which is then required, for a command that reads a corpus.
    """
    parser.add_argument(
        "checkpoint", metavar="CHECKPOINT", type=Path, help="a checkpoint, or a folder that contains checkpoint_best.pt"
    )
    dictionaries = "the folder with the dictionaries (default: the checkpoint's folder)"
    parser.add_argument("--data", metavar="DIR", type=Path, required=corpus is not None, help=corpus or dictionaries)
    parser.add_argument(
        "--user-dir",
        metavar="PACKAGE",
        type=Path,
        help="the folder of your own package that the model needs (default: the one used in training, if it exists)",
    )


def add_device(parser: argparse.ArgumentParser) -> None:
    """Declare ``--cpu``."""
    parser.add_argument("--cpu", action="store_true", help="use the CPU even if there is a GPU")


def on_device(hub: AnyHub, args: argparse.Namespace) -> AnyHub:
    """The model on the GPU, if there is one and ``--cpu`` does not forbid it."""
    import torch

    return hub.to("cuda" if torch.cuda.is_available() and not args.cpu else "cpu")


def load_checkpoint(args: argparse.Namespace, data: Path | None) -> Hub:
    """Load the model that the arguments name, with the dictionaries of a folder.

    Raises:
        UserError: see :func:`fairseq_stack.hub.interface.load`; or a package that the model needs cannot be imported.
    """
    from fairseq_stack.hub.interface import load
    from fairseq_stack.hub.user_dirs import import_packages

    import_packages(args.user_dir, args.checkpoint)
    return load(args.checkpoint, data)


def model_of(hub: Hub, checkpoint: Path) -> Model:
    """The model of a checkpoint, as results name it."""
    from fairseq_stack.evaluation.results import Model

    options = hub.cfg.model
    parameters = sum(parameter.numel() for parameter in hub.models.parameters())
    return Model(str(checkpoint), str(getattr(options, "arch", None) or options._name), parameters)
