"""Validation every N sentences, early stopping and decay that survive a restart, and comparison by all digits."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.trainer import Trainer

from fairseq_stack.compat.messages import message_of
from fairseq_stack.errors import UserError
from tests.end_to_end.conftest import Corpora
from tests.end_to_end.fairseq_commands import BARE_LANGUAGE_MODEL, TRAINING, Output, run
from tests.end_to_end.test_resuming import DROPOUT, assert_same, interrupting, state

MODEL = [*BARE_LANGUAGE_MODEL, "--stack-layers", "sup-4", *TRAINING]
INTERVAL, PATIENCE = 9, 4
# Of 30 sentences in batches of 4 and one of 2: 8 updates an epoch.
PROTOCOL = [
    *("--batch-size", 4, "--validate-interval-sentences", INTERVAL, "--keep-interval-updates", 1),
    *("--validate-interval", 1000000, "--save-interval", 1000000, "--patience", PATIENCE, "--max-epoch", 9),
    *("--exact-best-checkpoint-metric", "--seed", 3, "--lr", 0.2, "--lr-scheduler", "validation_plateau"),
    *("--lr-patience", 1, "--lr-shrink", 0.5, "--warmup-updates", 6),
]


@dataclass(frozen=True)
class Validation:
    """What the log says about a validation."""

    num_updates: int
    loss: float


def validations(output: Output) -> list[Validation]:
    pattern = r"valid on 'valid' subset \| loss (\S+) .*num_updates (\d+)"
    return [Validation(int(updates), float(loss)) for loss, updates in re.findall(pattern, "\n".join(output.log))]


@dataclass(frozen=True)
class Case:
    """A training run in the protocol, without an interruption."""

    command: list[Any]
    folder: Path
    validations: list[Validation]
    passed: list[int]
    """The numbers of updates after which the number of sentences passed a multiple of the interval."""


@pytest.fixture(scope="module")
def case(corpora: Corpora, tmp_path_factory: pytest.TempPathFactory) -> Case:
    command: list[Any] = ["train", corpora.language_modeling, *MODEL, *DROPOUT, *PROTOCOL, "--save-dir"]
    folder = tmp_path_factory.mktemp("whole")
    sentences = [0]

    def noting_sentences(self: Trainer, samples: list[dict[str, Any]], *args: Any) -> Any:
        sentences.append(sentences[-1] + sum(len(sample["target"]) for sample in samples))
        return train_step(self, samples, *args)

    train_step = Trainer.train_step
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "train_step", noting_sentences)
        output = run(*command, folder)
    intervals = [number // INTERVAL for number in sentences]
    passed = [update for update in range(1, len(intervals)) if intervals[update] > intervals[update - 1]]
    return Case(command, folder, validations(output), passed)


def protocol_state(folder: Path, name: str = "checkpoint_last.pt") -> dict[str, Any]:
    """What a checkpoint has of parameters, optimizer, place in the data, and of the counts of the protocol."""
    checkpoint = torch.load(folder / name, weights_only=True)
    counts = {key: checkpoint["extra_state"][key] for key in ("early_stopping", "num_sentences")}
    return {**state(folder, name), **counts, "schedule": checkpoint["optimizer_history"][-1]["lr_scheduler_state"]}


def test_the_protocol(case: Case) -> None:
    """Validation after so many sentences, a stop after so many of them without improvement, and decay after two."""
    assert [validation.num_updates for validation in case.validations] == case.passed
    losses = [validation.loss for validation in case.validations]
    best = losses.index(min(losses))
    assert best > 0
    assert len(losses) == best + 1 + PATIENCE
    assert state(case.folder, "checkpoint_best.pt")["num_updates"] == case.passed[best]
    # PATIENCE validations without improvement after the best one halve the rate twice.
    rates = [
        state(case.folder, f"checkpoint_{name}.pt")["optimizer"]["param_groups"][0]["lr"] for name in ("best", "last")
    ]
    assert rates[1] == rates[0] / 4
    assert {path.name for path in case.folder.glob("checkpoint_[0-9]*")} == {f"checkpoint_3_{case.passed[-1]}.pt"}


def test_interrupted(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two validations. The checkpoint is from the first of them, with sentences beyond the multiple."""
    first, second = case.passed[5:7]
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "train_step", interrupting(Trainer.train_step, num_updates=second - 1))
        with pytest.raises(KeyboardInterrupt):
            run(*case.command, tmp_path)
    assert state(tmp_path)["num_updates"] == first
    run(*case.command, tmp_path)
    for name in ("checkpoint_last.pt", "checkpoint_best.pt"):
        assert_same(protocol_state(tmp_path, name), protocol_state(case.folder, name), name)


def test_a_validation_that_only_the_end_brings_does_not_count(case: Case, tmp_path: Path) -> None:
    end = case.passed[-1] - 1
    stopped = run(*case.command, tmp_path, "--max-update", end)
    assert validations(stopped)[-1].num_updates == end
    run(*case.command, tmp_path)
    assert_same(protocol_state(tmp_path), protocol_state(case.folder))


SLOW = ["--lr", 1e-6, "--dropout", 0, "--max-epoch", 4, "--patience", 1]


def test_small_improvements_count_if_all_digits_do(corpora: Corpora, tmp_path: Path) -> None:
    """Each epoch lowers the loss in the sixth decimal, of which fairseq logs three."""
    command: list[Any] = ["train", corpora.language_modeling, *MODEL, *SLOW, "--save-dir"]
    rounded = validations(run(*command, tmp_path / "rounded"))
    assert len(rounded) == 2
    assert rounded[0].loss == rounded[1].loss
    exact = validations(run(*command, tmp_path / "exact", "--exact-best-checkpoint-metric"))
    assert [round(validation.loss, 3) for validation in exact] == [rounded[0].loss] * 4
    best = torch.load(tmp_path / "exact" / "checkpoint_best.pt", weights_only=True)["extra_state"]["best"]
    assert best != round(best, 3)
    assert best == pytest.approx(exact[-1].loss, abs=1e-5)


def test_an_unknown_metric(corpora: Corpora, tmp_path: Path) -> None:
    """Also if training continues, where another function of fairseq looks for it."""
    command: list[Any] = ["train", corpora.language_modeling, *MODEL, "--save-dir", tmp_path, "--max-epoch", 1]
    run(*command)
    with pytest.raises(KeyError) as error:
        run(*command, "--max-epoch", 2, "--best-checkpoint-metric", "bleu")
    assert str(message_of(error.value)).startswith("--best-checkpoint-metric bleu: the validation has no such metric")


def test_a_metric_that_is_no_average(corpora: Corpora, tmp_path: Path) -> None:
    command: list[Any] = ["train", corpora.language_modeling, *MODEL, "--save-dir", tmp_path]
    with pytest.raises(UserError, match="--exact-best-checkpoint-metric: ppl is rounded when it is computed"):
        run(*command, "--exact-best-checkpoint-metric", "--best-checkpoint-metric", "ppl")
    with pytest.raises(UserError, match=r"--exact-best-checkpoint-metric: wps, .*; expected an average, such as loss"):
        run(*command, "--exact-best-checkpoint-metric", "--best-checkpoint-metric", "wps")
