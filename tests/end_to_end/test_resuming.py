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
from tests.end_to_end.running import LANGUAGE_MODEL, TRAINING, TRANSLATION, run

DROPOUT = ["--dropout", 0.3, "--attention-dropout", 0.2, "--activation-dropout", 0.1]
UPDATES_AN_EPOCH = 3


@dataclass(frozen=True)
class Case:
    """A way to train for three epochs, or to go on with it, and the folder where that was done in one go."""

    command: list[Any]
    whole: Path

    def train(self, folder: Path, *flags: Any) -> None:
        run("train", *self.command, *TRAINING, *DROPOUT, "--max-epoch", 3, "--save-dir", folder, *flags)


@pytest.fixture(scope="module", params=["translation", "language-modeling"])
def case(request: pytest.FixtureRequest, corpora: Corpora, tmp_path_factory: pytest.TempPathFactory) -> Case:
    command = {
        "translation": [corpora.translation, *TRANSLATION],
        "language-modeling": [corpora.language_modeling, *LANGUAGE_MODEL],
    }[request.param]
    made = Case(command, tmp_path_factory.mktemp("whole"))
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
    assert {path.suffix for path in tmp_path.iterdir()} == {".pt"}
    case.train(tmp_path, *saving)
    assert_same(state(tmp_path), state(case.whole))


def interrupting(train_step: Callable[..., Any], num_updates: int) -> Callable[..., Any]:
    def train_step_or_interrupt(self: Trainer, *args: Any, **kwargs: Any) -> Any:
        if self.get_num_updates() == num_updates:
            raise KeyboardInterrupt
        return train_step(self, *args, **kwargs)

    return train_step_or_interrupt


def state(folder: Path) -> dict[str, Any]:
    """What the last checkpoint has of parameters, optimizer and place in the data."""
    checkpoint = torch.load(folder / "checkpoint_last.pt", weights_only=True)
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
