"""Training that is interrupted and resumed gives what uninterrupted training gives, to the last bit."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.trainer import Trainer

from tests.commands.killing import is_killed
from tests.end_to_end.conftest import Corpora
from tests.end_to_end.fairseq_commands import TRAINING, TRANSLATION, run

DROPOUT = ["--dropout", 0.3, "--attention-dropout", 0.2, "--activation-dropout", 0.1]
UPDATES_AN_EPOCH = 3
# Of 30 sentences: 4 updates an epoch, the last one smaller. The learning rate rises for 3 updates, and is halved after
# every second epoch.
LONG = [
    *("--batch-size", 4, "--update-freq", 2, "--max-epoch", 4, "--save-interval-updates", 2),
    *("--keep-interval-updates", 1, "--patience", 9, "--weight-decay", 0.01, "--clip-norm", 1),
    *("--lr-scheduler", "reduce_lr_on_plateau", "--lr-threshold", 0.9, "--lr-patience", 1, "--lr-shrink", 0.5),
    *("--warmup-updates", 3),
]
LONG_UPDATES = 16
Install = Callable[[pytest.MonkeyPatch], None]


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


@pytest.mark.parametrize(
    "num_updates", [2, UPDATES_AN_EPOCH, 4], ids=["in-first-epoch", "between-epochs", "in-second-epoch"]
)
def test_stopped(case: Case, tmp_path: Path, num_updates: int) -> None:
    case.train(tmp_path, "--max-update", num_updates)
    assert state(tmp_path)["num_updates"] == num_updates
    case.train(tmp_path)
    assert_same(state(tmp_path), state(case.whole))


def test_interrupted(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C comes after update 5; the last checkpoint is that of update 4, the first of the second epoch."""
    saving = ["--save-interval-updates", 2]
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "train_step", interrupting(Trainer.train_step, num_updates=5))
        with pytest.raises(KeyboardInterrupt):
            case.train(tmp_path, *saving)
    assert state(tmp_path)["num_updates"] == 4
    assert {path.suffix for path in tmp_path.iterdir()} == {".pt", ".txt"}
    case.train(tmp_path, *saving)
    assert_same(state(tmp_path), state(case.whole))


@dataclass(frozen=True)
class LongCase(Case):
    """Training with everything that a checkpoint has to keep."""

    def train(self, folder: Path, *flags: Any) -> None:
        super().train(folder, *LONG, *flags)

    def is_killed(self, folder: Path, install: Install) -> bool:
        """Train in a process that kills itself, as ``install`` lets it."""

        def train() -> None:
            install(pytest.MonkeyPatch())
            self.train(folder)

        return is_killed(train)

    def assert_finished_like_whole(self, folder: Path) -> None:
        """Both folders have the same files, with the same parameters and state of training."""
        files = sorted(path.name for path in self.whole.iterdir())
        assert sorted(path.name for path in folder.iterdir()) == files
        for name in files:
            if name.endswith(".pt"):
                assert_same(state(folder, name), state(self.whole, name), name)
            else:
                assert (folder / name).read_bytes() == (self.whole / name).read_bytes(), name


@pytest.fixture(scope="module")
def long_case(case: Case, tmp_path_factory: pytest.TempPathFactory) -> LongCase:
    made = LongCase(case.command, tmp_path_factory.mktemp("long"))
    made.train(made.whole)
    whole = state(made.whole)
    assert whole["num_updates"] == LONG_UPDATES
    assert whole["optimizer"]["param_groups"][0]["lr"] == 0.005
    return made


def kill_in_update(num_updates: int) -> Install:
    """Let a process be killed while it makes the update after so many."""

    def install(patch: pytest.MonkeyPatch) -> None:
        def check_and_clip(self: Trainer, clip_norm: float) -> Any:
            if self.get_num_updates() == num_updates:
                os.kill(os.getpid(), signal.SIGKILL)
            return clip_grad_norm(self, clip_norm)

        clip_grad_norm = Trainer.clip_grad_norm
        patch.setattr(Trainer, "clip_grad_norm", check_and_clip)

    return install


def test_killed(long_case: LongCase, tmp_path: Path) -> None:
    """Killed in an update of the third epoch. tests/compat/test_checkpoint_utils.py kills processes that save."""
    assert long_case.is_killed(tmp_path, kill_in_update(9))
    assert state(tmp_path)["num_updates"] == 8
    long_case.train(tmp_path)
    long_case.assert_finished_like_whole(tmp_path)


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
