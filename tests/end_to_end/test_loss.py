"""The loss of an update: summed over time, averaged over the sentences of all its batches, and clipped after that."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.trainer import Trainer
from torch import Tensor, nn

from tests.end_to_end.conftest import SPLITS, Corpora
from tests.end_to_end.fairseq_commands import BARE_LANGUAGE_MODEL, BARE_TRANSLATION, TRAINING, run
from tests.helpers import assert_normwise_close

CLIP_NORM, SMOOTHING = 0.5, 0.1
MODELS = {
    "language_modeling": [*BARE_LANGUAGE_MODEL, "--stack-layers", "sup-4"],
    "translation": [*BARE_TRANSLATION, "--stack-encoder-layers", "sdpa", "--stack-decoder-layers", "nd-2-2-3"],
}
# Of 30 sentences in batches of 4 and one of 2, of different lengths: three updates of three batches, one of two.
OPTIONS = [
    *("--sentence-avg", "--batch-size", 4, "--update-freq", 3, "--clip-norm", CLIP_NORM, "--max-epoch", 1),
    *("--dropout", 0, "--compact-vocab"),
]
CRITERIONS = {"cross_entropy": 0.0, "torch_cross_entropy": SMOOTHING}


def gradient_of_mean_loss(trainer: Trainer, samples: list[dict[str, Any]], smoothing: float) -> Tensor:
    """By PyTorch's cross-entropy over the symbols that can occur; all parameters in one vector."""
    model: nn.Module = trainer.model.train()
    loss, num_sentences = torch.zeros(()), 0
    for sample in samples:
        logits = model(**sample["net_input"])[0].flatten(0, 1)
        possible = logits[0].isfinite()
        target = (possible.cumsum(0) - 1)[sample["target"].flatten()]
        target[sample["target"].flatten() == trainer.task.target_dictionary.pad()] = -100
        loss = loss + nn.functional.cross_entropy(
            logits[:, possible], target, reduction="sum", label_smoothing=smoothing
        )
        num_sentences += len(sample["target"])
    gradients = torch.autograd.grad(loss / num_sentences, list(model.parameters()), materialize_grads=True)
    return torch.cat([gradient.flatten() for gradient in gradients])


@pytest.mark.parametrize(
    ("task", "criterion"), [("translation", "cross_entropy"), ("language_modeling", "torch_cross_entropy")]
)
def test_mean_over_sentences(
    corpora: Corpora, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str, criterion: str
) -> None:
    expected: list[Tensor] = []
    actual: list[Tensor] = []
    clipped: list[Tensor] = []
    train_step, clip_grad_norm = Trainer.train_step, Trainer.clip_grad_norm

    def expecting(self: Trainer, samples: list[dict[str, Any]], *args: Any) -> Any:
        expected.append(gradient_of_mean_loss(self, samples, CRITERIONS[criterion]))
        return train_step(self, samples, *args)

    def noting(self: Trainer, clip_norm: float) -> Any:
        gradients = [parameter.grad for parameter in self.model.parameters()]
        actual.append(torch.cat([gradient.flatten() for gradient in gradients]))
        norm = clip_grad_norm(self, clip_norm)
        clipped.append(torch.cat([gradient.flatten() for gradient in gradients]))
        return norm

    monkeypatch.setattr(Trainer, "train_step", expecting)
    monkeypatch.setattr(Trainer, "clip_grad_norm", noting)
    options = ["--criterion", criterion, *(["--label-smoothing", SMOOTHING] if CRITERIONS[criterion] else [])]
    command = [getattr(corpora, task), *MODELS[task], *TRAINING, *OPTIONS, *options, "--save-dir", tmp_path]
    trained = run("train", *command)
    assert len(actual) == math.ceil(math.ceil(SPLITS["train"] / 4) / 3)
    for gradient, right, after in zip(actual, expected, clipped, strict=True):
        assert_normwise_close(gradient, right, 1e-5, "gradient")
        assert_normwise_close(after, gradient * min(1, CLIP_NORM / float(gradient.norm())), 1e-5, "clipped gradient")
    assert max(gradient.norm() for gradient in actual) > CLIP_NORM
    assert all(map(math.isfinite, trained.validation_losses()))
