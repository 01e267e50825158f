"""Training that is interrupted and resumed gives what uninterrupted training gives, to the last bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.trainer import Trainer

from tests.end_to_end.conftest import Corpora
from tests.end_to_end.fairseq_commands import TRAINING, TRANSLATION, run

DROPOUT = ["--dropout", 0.3, "--attention-dropout", 0.2, "--activation-dropout", 0.1]
UPDATES_AN_EPOCH = 3
# Everything that a checkpoint has to keep. Of 30 sentences: 4 updates an epoch, the last one smaller. The learning rate
# rises for 3 updates, and is halved after every second epoch.
LONG = [
    *("--batch-size", 4, "--update-freq", 2, "--max-epoch", 4, "--save-interval-updates", 2),
    *("--keep-interval-updates", 1, "--patience", 9, "--weight-decay", 0.01, "--clip-norm", 1),
    *("--lr-scheduler", "reduce_lr_on_plateau", "--lr-threshold", 0.9, "--lr-patience", 1, "--lr-shrink", 0.5),
    *("--warmup-updates", 3, "--store-ema", "--ema-decay", 0.9, "--ema-update-freq", 3),
]


@dataclass(frozen=True)
class Case:
    """A way to train for three epochs, or to continue, and the folder of an uninterrupted run."""

    command: list[Any]
    whole: Path

    def train(self, folder: Path, *flags: Any) -> None:
        run("train", *self.command, *TRAINING, *DROPOUT, "--max-epoch", 3, "--save-dir", folder, *flags)


@pytest.fixture(scope="module")
def case(corpora: Corpora, tmp_path_factory: pytest.TempPathFactory) -> Case:
    made = Case([corpora.translation, *TRANSLATION], tmp_path_factory.mktemp("whole"))
    made.train(made.whole)
    assert state(made.whole)["num_updates"] == 3 * UPDATES_AN_EPOCH
    return made


@pytest.mark.parametrize("num_updates", [2, UPDATES_AN_EPOCH], ids=["in-first-epoch", "between-epochs"])
def test_stopped(case: Case, tmp_path: Path, num_updates: int) -> None:
    case.train(tmp_path, "--max-update", num_updates)
    assert state(tmp_path)["num_updates"] == num_updates
    case.train(tmp_path)
    assert_same(state(tmp_path), state(case.whole))


def test_interrupted(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C comes after update 11; the last checkpoint is that of update 10, the second of the third epoch."""
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    case.train(whole, *LONG)
    assert state(whole)["num_updates"] == 16
    assert state(whole)["optimizer"]["param_groups"][0]["lr"] == 0.005
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "train_step", interrupting(Trainer.train_step, num_updates=11))
        with pytest.raises(KeyboardInterrupt):
            case.train(parts, *LONG)
    assert state(parts)["num_updates"] == 10
    case.train(parts, *LONG)
    assert {path.name for path in parts.iterdir()} == {path.name for path in whole.iterdir()}
    for path in whole.glob("*.pt"):
        assert_same(state(parts, path.name), state(whole, path.name), path.name)


def test_an_average_begins_with_the_checkpoint(case: Case, tmp_path: Path) -> None:
    before = case.whole / "checkpoint_last.pt"
    case.train(tmp_path, "--store-ema", "--ema-decay", 1, "--max-update", 1, "--finetune-from-model", before)
    trained, weight = state(tmp_path), "decoder.embed_tokens.weight"
    assert torch.equal(trained["average"][weight], state(case.whole)["parameters"][weight])
    assert not torch.equal(trained["average"][weight], trained["parameters"][weight])


def interrupting(train_step: Callable[..., Any], num_updates: int) -> Callable[..., Any]:
    def train_step_or_interrupt(self: Trainer, *args: Any, **kwargs: Any) -> Any:
        if self.get_num_updates() == num_updates:
            raise KeyboardInterrupt
        return train_step(self, *args, **kwargs)

    return train_step_or_interrupt


def state(folder: Path, name: str = "checkpoint_last.pt") -> dict[str, Any]:
    """What a checkpoint has of parameters, optimizer and place in the data."""
    checkpoint = torch.load(folder / name, weights_only=True)
    return {
        "parameters": checkpoint["model"],
        "optimizer": checkpoint["last_optimizer_state"],
        "num_updates": checkpoint["optimizer_history"][-1]["num_updates"],
        "place": checkpoint["extra_state"]["train_iterator"],
        "average": checkpoint["extra_state"].get("ema"),
    }


def assert_same(actual: Any, expected: Any, name: str = "state") -> None:
    """Assert that two nested containers of tensors and plain values are equal."""
    assert type(actual) is type(expected), name
    if isinstance(expected, dict):
        assert actual.keys() == expected.keys(), name
        for key in expected:
            assert_same(actual[key], expected[key], f"{name}[{key!r}]")
    elif isinstance(expected, list | tuple):
        assert len(actual) == len(expected), name
        for index, pair in enumerate(zip(actual, expected, strict=True)):
            assert_same(*pair, f"{name}[{index}]")
    elif isinstance(expected, torch.Tensor):
        assert torch.equal(actual, expected), name
    else:
        assert actual == expected, name
