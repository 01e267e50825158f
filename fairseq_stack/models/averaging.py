"""The average of checkpoints: one model whose parameters are the means of the parameters of several models."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import torch
from fairseq import checkpoint_utils
from omegaconf import OmegaConf
from torch import Tensor

from fairseq_stack.errors import UserError
from fairseq_stack.files import require_writable, written_whole
from fairseq_stack.models.vocabulary import FINGERPRINT


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
