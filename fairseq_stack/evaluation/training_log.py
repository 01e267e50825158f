"""The course of a training run, from the log of ``fairseq-train --log-format json --log-file LOG``."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairseq_stack.errors import UserError
from fairseq_stack.files import read_text

_PARAMETERS = re.compile(r"^num\. shared model params: ([\d,]+)", flags=re.MULTILINE)


@dataclass(frozen=True)
class Validation:
    """One validation.

    Attributes:
        updates: number of updates before it.
        loss: negative log-likelihood, without label smoothing, in nats a token.
    """

    updates: int
    loss: float


@dataclass(frozen=True)
class TrainingLog:
    """The course of a training run.

    Attributes:
        parameters: number of the model's parameters.
        seconds: time spent in updates, without validating and saving, in whole seconds an epoch.
        epochs: number of epochs that were completed.
        validations: in the order of updates.
    """

    parameters: int
    seconds: int
    epochs: int
    validations: tuple[Validation, ...]

    @property
    def updates(self) -> int:
        """The number of updates at the last validation."""
        return self.validations[-1].updates

    @property
    def best(self) -> Validation:
        """The first of the validations with the least loss."""
        return min(self.validations, key=lambda validation: validation.loss)


def read_training_log(path: Path) -> TrainingLog:
    """Read a log; if the training run was interrupted and resumed, repeated updates count once.

    Raises:
        UserError: the log has no number of parameters, or no validation.
    """
    text = read_text(path)
    parameters = _PARAMETERS.search(text)
    losses: dict[int, float] = {}
    seconds: dict[int, int] = {}
    for entry in entries(text):
        if "valid_loss" in entry:
            loss = float(entry.get("valid_nll_loss", entry["valid_loss"]))
            losses[int(entry["valid_num_updates"])] = loss * math.log(2)
        elif "train_train_wall" in entry:
            seconds[int(entry["epoch"])] = int(entry["train_train_wall"])
    if parameters is None or not losses:
        missing = "number of parameters" if parameters is None else "validation"
        raise UserError(f"{path}: this log has no {missing}; did fairseq-train write it with --log-format json?")
    return TrainingLog(
        parameters=int(parameters.group(1).replace(",", "")),
        seconds=sum(seconds.values()),
        epochs=len(seconds),
        validations=tuple(Validation(updates, loss) for updates, loss in sorted(losses.items())),
    )


def entries(text: str) -> Iterator[dict[str, Any]]:
    """The lines of a log that are JSON objects; half a line, of a process that was killed, is left out."""
    for line in text.splitlines():
        if line.startswith('{"'):
            with contextlib.suppress(json.JSONDecodeError):
                yield json.loads(line)
