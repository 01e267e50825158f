"""The average of checkpoints: one model whose parameters are the means of the parameters of several models."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path

import torch
from fairseq import checkpoint_utils
from omegaconf import OmegaConf
from torch import Tensor

from fairseq_stack.errors import UserError
from fairseq_stack.files import require_writable, written_whole
from fairseq_stack.models.checkpoints import FINGERPRINT

EPOCHS = re.compile(r"checkpoint(\d+)\.pt")
UPDATES = re.compile(r"checkpoint_\d+_(\d+)\.pt")


def last_checkpoints(folder: Path, pattern: re.Pattern[str], count: int, upper_bound: int | None = None) -> list[Path]:
    """The last checkpoints of a training run, the newest first.

    Args:
        folder: the ``--save-dir`` of the training run.
        pattern: matches the names, with the epoch or the update as its group: :data:`EPOCHS` or :data:`UPDATES`.
        count: how many checkpoints.
        upper_bound: the highest epoch or update to take.

    Raises:
        UserError: there is no such folder, or it holds fewer checkpoints.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder: expected the --save-dir of a training run")
    matches = {path: pattern.fullmatch(path.name) for path in folder.iterdir()}
    numbers = {path: int(match[1]) for path, match in matches.items() if match}
    within = [path for path, number in numbers.items() if upper_bound is None or number <= upper_bound]
    if len(within) < count:
        example = "checkpoint12.pt" if pattern is EPOCHS else "checkpoint_12_3000.pt"
        bound = "" if upper_bound is None else f" up to number {upper_bound}"
        raise UserError(
            f"{folder}: expected at least {count} checkpoints with names such as {example}{bound}, found {len(within)} "
            "(training with --no-epoch-checkpoints keeps none of each epoch)"
        )
    return sorted(within, key=lambda path: numbers[path], reverse=True)[:count]


def average_checkpoints(paths: Sequence[Path], output: Path, force: bool = False) -> None:
    r"""Write a checkpoint whose parameters are :math:`\frac{1}{n} \sum_{i=1}^{n} \theta_i`, added up in float64.

    It has the configuration of the first checkpoint and no optimizer state. ``output`` is written whole or not at all.

    Args:
        paths: the checkpoints, of models of the same architecture and vocabulary.
        output: the file to write.
        force: replace ``output`` if it exists.

    Raises:
        UserError: a file is not a checkpoint, not finite, or has other parameters or another vocabulary than the
            first; or ``output`` exists or cannot be written.
    """
    if output.exists() and not force:
        raise UserError(f"--output {output} already exists; give --force to replace it")
    require_writable(output)
    first = checkpoint_utils.load_checkpoint_to_cpu(str(paths[0]))
    expected = _layout(first["model"])
    sums = {name: value.double() for name, value in first["model"].items() if value.is_floating_point()}
    for path in paths[1:]:
        model = checkpoint_utils.load_checkpoint_to_cpu(str(path))["model"]
        different = sorted({name for name, _ in expected.items() ^ _layout(model).items()})
        if different:
            raise UserError(
                f"{path} and {paths[0]} differ in {', '.join(different[:3])}; expected models of the same architecture "
                "and dictionary"
            )
        sums = {name: total + model[name] for name, total in sums.items()}
    for name, total in sums.items():  # in place: parameters that share memory still do
        first["model"][name].copy_(total / len(paths))
    first["cfg"] = OmegaConf.to_container(first["cfg"])
    first.pop("last_optimizer_state", None)
    for name in ("ema", "ema_fp32_params"):  # a moving average of one of the checkpoints
        first["extra_state"].pop(name, None)
    content = io.BytesIO()
    torch.save(first, content)
    with written_whole(output) as file:
        file.write(content.getbuffer())


def _layout(parameters: dict[str, Tensor]) -> dict[str, int | torch.Size]:
    """The shapes of parameters, and the fingerprints of dictionaries."""
    return {name: int(value) if name.endswith(FINGERPRINT) else value.shape for name, value in parameters.items()}
