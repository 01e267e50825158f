"""The course of a training run, from the log of ``fairseq-train --log-format json --log-file LOG``."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
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


@dataclass(frozen=True)
class Entry:
    """A line of a log that is a JSON object.

    Attributes:
        place: the file and the line, for errors.
        figures: the object.
    """

    place: str
    figures: dict[str, Any]

    def __contains__(self, name: str) -> bool:
        return name in self.figures

    def figure(self, name: str) -> float:
        """A number, which fairseq writes as a string and which may be NaN.

        Raises:
            UserError: the line does not have it, or it is not a number.
        """
        try:
            return float(self.figures[name])
        except KeyError:
            raise UserError(f"{self.place}: {name} is missing") from None
        except (TypeError, ValueError, OverflowError) as error:
            raise UserError(f"{self.place}: expected a number as {name}, got {self._shown(name)}") from error

    def count(self, name: str) -> float:
        """A number that is finite and not negative, such as a number of updates.

        Raises:
            UserError: it is not.
        """
        if not 0 <= self.figure(name) < math.inf:
            raise UserError(f"{self.place}: expected a finite number >= 0 as {name}, got {self._shown(name)}")
        return self.figure(name)

    def _shown(self, name: str) -> str:
        return json.dumps(self.figures[name])[:40]


def read_training_log(path: Path) -> TrainingLog:
    """Read a log; if the training run was interrupted and resumed, repeated updates count once.

    Raises:
        UserError: the log has no number of parameters, or no validation; see also :func:`read_entries`.
    """
    text = read_text(path)
    parameters = _PARAMETERS.search(text)
    losses: dict[int, float] = {}
    seconds: dict[int, int] = {}
    for entry in read_entries(path):
        if "valid_loss" in entry:
            loss = entry.figure("valid_nll_loss" if "valid_nll_loss" in entry else "valid_loss")
            losses[int(entry.count("valid_num_updates"))] = loss * math.log(2)
        elif "train_train_wall" in entry:
            seconds[int(entry.count("epoch"))] = int(entry.count("train_train_wall"))
    if parameters is None or not losses:
        missing = "number of parameters" if parameters is None else "validation"
        raise UserError(f"{path}: this log has no {missing}; did fairseq-train write it with --log-format json?")
    return TrainingLog(
        parameters=int(parameters.group(1).replace(",", "")),
        seconds=sum(seconds.values()),
        epochs=len(seconds),
        validations=tuple(Validation(updates, loss) for updates, loss in sorted(losses.items())),
    )


def read_entries(path: Path) -> Sequence[Entry]:
    """The lines of a log that are JSON objects; half a line, of a process that was killed, is left out.

    Raises:
        UserError: a line has a number that is too long, or brackets that are nested too deeply.
    """
    entries = []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        if line.startswith('{"'):
            place = f"{path}, line {number}"
            try:
                entries.append(Entry(place, json.loads(line)))
            except json.JSONDecodeError:
                continue
            except (ValueError, RecursionError) as error:
                raise UserError(f"{place} is not from fairseq-train: {error}") from error
    return entries
