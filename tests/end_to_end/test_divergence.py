"""Training whose values stop being finite ends with one message that says which, and keeps its checkpoints."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.criterions.cross_entropy import CrossEntropyCriterion
from fairseq.trainer import Trainer
from torch import Tensor

from fairseq_stack.errors import UserError
from fairseq_stack.models.transformer.stack_transformer_lm import StackTransformerLanguageModel
from fairseq_stack.modules import StackAttention
from tests.end_to_end.conftest import Corpora
from tests.end_to_end.fairseq_commands import BARE_LANGUAGE_MODEL, LANGUAGE_MODEL, TRAINING, TRANSLATION, run
from tests.end_to_end.test_finished import contents
from tests.end_to_end.test_resuming import UPDATES_AN_EPOCH, state

MODEL = [*BARE_LANGUAGE_MODEL, "--stack-layers", "sup-4"]


@pytest.fixture
def train(corpora: Corpora, tmp_path: Path) -> Callable[..., str]:
    """Trains until training diverges, which leaves the checkpoints as they are, and returns the message."""

    def train_until_error(*options: Any) -> str:
        before = contents(tmp_path)
        with pytest.raises(UserError) as error:
            run("train", corpora.language_modeling, *MODEL, *TRAINING, *options, "--save-dir", tmp_path)
        assert contents(tmp_path) == before
        assert "\n" not in str(error.value)
        return str(error.value)

    return train_until_error


def test_learning_rate(corpora: Corpora, tmp_path: Path) -> None:
    command = [corpora.translation, *TRANSLATION, *TRAINING, "--lr", 1e6, "--clip-norm", 1, "--save-dir", tmp_path]
    message = r"^training diverged at update 2 \(.*\): the norm of the gradient of decoder\..* is nan; lower --lr"
    with pytest.raises(UserError, match=message):
        run("train", *command)
    assert not list(tmp_path.iterdir())


class Scaled(torch.autograd.Function):
    """The identity, with 1e30 times the gradient."""

    @staticmethod
    def forward(context: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tensor:
        return gradient * 1e30


def test_gradient(train: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    forward = StackAttention.forward

    def forward_with_gradient(self: StackAttention, *inputs: Tensor) -> Any:
        return Scaled.apply(forward(self, *inputs))

    monkeypatch.setattr(StackAttention, "forward", forward_with_gradient)
    where = "the norm of the gradient of decoder.layers.0.self_attn"
    assert f"at update 1 (gradients are Nan/Inf): {where}" in train()


def test_validation(train: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    forward = StackTransformerLanguageModel.forward

    def forward_or_nan(self: StackTransformerLanguageModel, *args: Any, **kwargs: Any) -> Any:
        logits, extra = forward(self, *args, **kwargs)
        return logits if self.training else logits * torch.nan, extra

    monkeypatch.setattr(StackTransformerLanguageModel, "forward", forward_or_nan)
    assert f"diverged during validation after update {UPDATES_AN_EPOCH} (the loss is nan): all parameters" in train()


def test_loss(train: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the gradient does not show it."""
    compute_loss = CrossEntropyCriterion.compute_loss

    def infinite_loss(self: Any, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        loss, _ = compute_loss(self, *args, **kwargs)
        return loss + torch.inf, loss + torch.inf

    monkeypatch.setattr(CrossEntropyCriterion, "compute_loss", infinite_loss)
    assert "at update 1 (the loss is inf): all parameters and gradients are finite" in train()


@pytest.fixture
def spoilt(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fourth update makes a parameter NaN."""
    set_num_updates = Trainer.set_num_updates

    def set_and_spoil(self: Trainer, num_updates: int) -> None:
        set_num_updates(self, num_updates)
        if num_updates == 4:
            self.get_model().decoder.layers[0].fc1.bias.data[0] = torch.nan

    monkeypatch.setattr(Trainer, "set_num_updates", set_and_spoil)


def test_parameters(corpora: Corpora, tmp_path: Path, spoilt: None, train: Callable[..., str]) -> None:
    """fairseq would write them over the checkpoint before; where it saves later, it uses them first."""
    run("train", corpora.language_modeling, *MODEL, *TRAINING, "--max-epoch", 1, "--save-dir", tmp_path)
    assert state(tmp_path)["num_updates"] == UPDATES_AN_EPOCH == 3
    parameter = "the parameter decoder.layers.0.fc1.bias is not finite"
    saved = train("--save-interval-updates", 4, "--disable-validation")
    assert f": {parameter} after update 4, so {tmp_path}/checkpoint_2_4.pt is not written; " in saved
    assert train().startswith(f"training diverged at update 5 (gradients are Nan/Inf): {parameter}; ")


def test_checkpoint(corpora: Corpora, language_model: Path, tmp_path: Path) -> None:
    checkpoint = torch.load(language_model, weights_only=True)
    for name, value in {"decoder.layers.0.fc1.bias": torch.nan, "decoder.layers.2.fc2.weight": -torch.inf}.items():
        checkpoint["model"][name].view(-1)[-1] = value
    path = tmp_path / "damaged.pt"
    torch.save(checkpoint, path)
    message = re.escape(f"the checkpoint {path} has parameters that are not finite: decoder.layers.0.fc1.bias, dec")
    data, saving = corpora.language_modeling, ["--save-dir", tmp_path / "save"]
    for command, *options in (
        ("train", *LANGUAGE_MODEL, *TRAINING, "--restore-file", path, *saving),
        ("train", *LANGUAGE_MODEL, *TRAINING, "--finetune-from-model", path, *saving),
        ("eval-lm", "--path", path, "--sample-break-mode", "eos", "--cpu"),
    ):
        with pytest.raises(UserError, match=f"^{message}"):
            run(str(command), data, *options)
    assert not list((tmp_path / "save").iterdir())
