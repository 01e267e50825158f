"""``fairseq-stack COMMAND CHECKPOINT [--data DIR]``: how every subcommand that reads a model names it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from fairseq_stack.errors import UserError

if TYPE_CHECKING:
    from fairseq_stack.evaluation.results import Model
    from fairseq_stack.hub.interface import Hub
    from fairseq_stack.hub.language_model import LanguageModel

AnyModel = TypeVar("AnyModel", bound="Hub | LanguageModel")

CHECKPOINT = "a checkpoint, or a folder that contains checkpoint_best.pt"
LANGUAGE_MODEL = "a checkpoint, a folder that contains checkpoint_best.pt, or a model's Hugging Face folder"
"""What :func:`load_language_model` takes."""


def add_checkpoint(parser: argparse.ArgumentParser, corpus: str | None = None, checkpoint: str = CHECKPOINT) -> None:
    """Declare CHECKPOINT, ``--data`` and ``--user-dir``; with the help ``corpus``, ``--data`` is a required corpus."""
    parser.add_argument("checkpoint", metavar="CHECKPOINT", type=Path, help=checkpoint)
    dictionaries = "a corpus, or a folder with the dictionaries (default: the checkpoint's)"
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


def on_device(model: AnyModel, args: argparse.Namespace) -> AnyModel:
    """The model on the GPU, if there is one and ``--cpu`` does not forbid it."""
    import torch

    model.to("cuda" if torch.cuda.is_available() and not args.cpu else "cpu")
    return model


def load_checkpoint(args: argparse.Namespace, data: Path | None) -> Hub:
    """Load the model that the arguments name, with the dictionaries of a corpus or a folder."""
    from fairseq_stack.hub.interface import load
    from fairseq_stack.hub.paths import import_packages

    import_packages(args.user_dir, args.checkpoint)
    return load(args.checkpoint, data)


def load_language_model(args: argparse.Namespace) -> LanguageModel:
    """Load the language model that the arguments name: a checkpoint, or a folder of Hugging Face transformers."""
    if not (args.checkpoint / "config.json").is_file():
        return load_checkpoint(args, args.data).as_language_model()
    for option, value in (("--data", args.data), ("--user-dir", args.user_dir)):
        if value is not None:
            raise UserError(f"{option}: {args.checkpoint} is a Hugging Face folder and needs no other; leave this out")
    from transformers.utils.logging import disable_progress_bar

    from fairseq_stack.huggingface.language_model import HuggingFaceLanguageModel

    disable_progress_bar()
    return HuggingFaceLanguageModel(args.checkpoint)


def require_ends(model: LanguageModel, remedy: str) -> None:
    """Raise UserError if the model has not learned where strings end."""
    task = getattr(model, "task", None)
    if task is not None and getattr(task.args, "without_eos", False):
        raise UserError(f"the model was trained with --without-eos, so it does not predict ends; {remedy}")


def model_of(model: Hub | LanguageModel, checkpoint: Path) -> Model:
    """The model of a checkpoint, as results name it."""
    from fairseq_stack.evaluation.results import Model

    return Model(str(checkpoint), model.architecture, sum(parameter.numel() for parameter in model.parameters()))
