"""The course of a training run, from the log of ``fairseq-train --log-format json --log-file LOG``."""

from __future__ import annotations

import contextlib
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairseq_stack.errors import UserError
from fairseq_stack.files import read_text

_PARAMETERS = re.compile(r"^num\. shared model params: (\d[\d,]*)", flags=re.MULTILINE)


@dataclass(frozen=True)
class Validation:
    """One validation.

    Attributes:
        updates: number of updates before it.
        loss: negative log-likelihood, without label smoothing, in nats per token.
    """

    updates: int
    loss: float


@dataclass(frozen=True)
class TrainingLog:
    """The course of a training run.

    Attributes:
        parameters: number of the model's parameters.
        seconds: time spent in updates, without validating and saving, in whole seconds per epoch.
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
        """The first of the validations with the least loss; a loss that is not a number is greater than any other."""
        return min(self.validations, key=lambda validation: (math.isnan(validation.loss), validation.loss))

    @property
    def least_loss(self) -> float:
        """The loss of :attr:`best`, by which runs are compared; infinite if no loss is a number."""
        return math.inf if math.isnan(self.best.loss) else self.best.loss


def read_training_log(path: Path) -> TrainingLog:
    """Read a log; if the training run was interrupted and resumed, repeated updates count once.

    Raises:
        UserError: the log has no number of parameters, or no validation.
    """
    parameters = _PARAMETERS.search(read_text(path))
    losses: dict[int, float] = {}
    seconds: dict[int, int] = {}
    for entry in read_entries(path):
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


def read_entries(path: Path) -> list[dict[str, Any]]:
    """The lines of a log that are JSON objects, in which fairseq writes most numbers as strings.

    Half a line, of a process that was killed, is left out.
    """
    entries = []
    for line in read_text(path).splitlines():
        if line.startswith('{"'):
            with contextlib.suppress(json.JSONDecodeError):
                entries.append(json.loads(line))
    return entries
