"""Training runs and their curves, from the logs of ``fairseq-train --log-format json --log-file LOG``."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairseq_stack.errors import UserError
from fairseq_stack.files import read_text, reading_as
from fairseq_stack_preprocess.layout import LOWER_BOUND_NAME

_PARAMETERS = re.compile(r"^num\. shared model params: (\d[\d,]*)", flags=re.MULTILINE)
_BEGINNING = "No existing checkpoint found"
_DATA = re.compile(r"""'data': (?:'([^']*)'|"([^"]*)")""")
_WITHOUT_EOS = "'without_eos': True"


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

    Of several runs that began without a checkpoint, the last counts.

    Raises:
        UserError: the log has no number of parameters, or no validation.
    """
    parameters = _PARAMETERS.findall(read_text(path))
    losses: dict[int, float] = {}
    seconds: dict[int, int] = {}
    for entry in read_entries(path):
        if "valid_loss" in entry:
            loss = float(entry.get("valid_nll_loss", entry["valid_loss"]))
            losses[int(entry["valid_num_updates"])] = loss * math.log(2)
        elif "train_train_wall" in entry:
            seconds[int(entry["epoch"])] = int(entry["train_train_wall"])
    if not parameters or not losses:
        missing = "validation" if parameters else "number of parameters"
        raise UserError(f"{path}: this log has no {missing}; did fairseq-train write it with --log-format json?")
    return TrainingLog(
        parameters=int(parameters[-1].replace(",", "")),
        seconds=sum(seconds.values()),
        epochs=len(seconds),
        validations=tuple(Validation(updates, loss) for updates, loss in sorted(losses.items())),
    )


def read_entries(path: Path) -> list[dict[str, Any]]:
    """The lines of a log that are JSON objects, in which fairseq writes most numbers as strings.

    Half a line, of a process that was killed, is left out, and so is all before the last beginning of a run.
    """
    entries = []
    for line in read_text(path).rpartition(_BEGINNING)[2].splitlines():
        if line.startswith('{"'):
            with contextlib.suppress(json.JSONDecodeError):
                entries.append(json.loads(line))
    return entries


@dataclass(frozen=True)
class TrainingCurve:
    """The course of a training run.

    Attributes:
        values: a score of the validations, by number of updates or of epochs, ascending.
        updates_in_epoch: None if the log ends too early to tell it.
        least_loss: the least negative log-likelihood of a validation in nats per token, by which runs are compared;
            infinite if none is a number.
    """

    values: Mapping[float, float]
    updates_in_epoch: float | None
    least_loss: float


def read_training_curve(path: Path, metric: str | None = None) -> TrainingCurve:
    """Read the log of a run.

    Args:
        path: the log.
        metric: the name of a score of the validations as fairseq logs it, such as ``ppl`` or ``bleu`` (default: the
            negative log-likelihood, without label smoothing, in nats per token).

    Raises:
        UserError: see :func:`.read_training_log`; or no validation has this score, or in none it is finite.
    """
    log = read_training_log(path)
    entries = read_entries(path)
    losses = {float(validation.updates): validation.loss for validation in log.validations}
    values = losses if metric is None else _figures(path, entries, metric)
    if not any(map(math.isfinite, values.values())):
        what = "valid_loss" if metric is None else f"valid_{metric}"
        raise UserError(f"{path}: {what} is not a finite number in any validation")
    return TrainingCurve(values, _updates_in_epoch(entries), log.least_loss)


def read_valid_bound(log: Path) -> float:
    """The least possible cross-entropy on the validation data of a run, in nats per token.

    The ends of strings are counted unless the run is trained with ``--without-eos``. The bound is in the corpus that
    the log names. If the log names it relative to a folder, the corpus is sought from the current folder and from each
    folder above the log.

    Raises:
        UserError: the corpus is not there.
    """
    text = read_text(log)
    *_, match = None, *_DATA.finditer(text)
    if match is None:
        raise UserError(f"{log} does not name its data; did fairseq-train write it?")
    data = Path(match[1] or match[2])
    places = [folder / data.parent / LOWER_BOUND_NAME for folder in (Path(), *log.absolute().parents)]
    for path in places:
        if path.is_file():
            ends = "without" if _WITHOUT_EOS in text[match.start() :] else "with"
            with reading_as("a lower bound of fairseq-stack prepare cfl", path):
                bound = float(json.loads(read_text(path))["valid"][f"nats_per_token_{ends}_eos"])
                if not math.isfinite(bound):
                    raise ValueError(f"the bound is {bound}")
                return bound
    raise UserError(f"{log}: the data that it names, {data}, has no {LOWER_BOUND_NAME} next to it")


def _figures(path: Path, entries: Sequence[dict[str, Any]], metric: str) -> dict[float, float]:
    name = f"valid_{metric}"
    values = {float(entry["valid_num_updates"]): float(entry[name]) for entry in entries if name in entry}
    if not values:
        known = {key.removeprefix("valid_") for entry in entries for key in entry if key.startswith("valid_")}
        raise UserError(f"{path}: no validation has {metric}; expected one of {', '.join(sorted(known))}")
    return dict(sorted(values.items()))


def _updates_in_epoch(entries: Sequence[dict[str, Any]]) -> float | None:
    """From the last line of progress, which says how much of an epoch is done; without one, from an end of an epoch."""
    progress = ((entry, "num_updates", "update") for entry in reversed(entries))
    ends = ((entry, "train_num_updates", "epoch") for entry in entries)
    for entry, updates, epochs in (*progress, *ends):
        if updates in entry and entry.get(epochs):
            return float(entry[updates]) / entry[epochs]
    return None
