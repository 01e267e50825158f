"""The schedule validation_plateau counts as PyTorch's does."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from fairseq.optim.adam import FairseqAdam, FairseqAdamConfig
from fairseq.optim.lr_scheduler.reduce_lr_on_plateau import ReduceLROnPlateauLRScheduleConfig
from omegaconf import OmegaConf
from torch import nn

from fairseq_stack.optim import ValidationPlateau

LOSSES = [3.0, 2.0, 2.0, 1.9999, 2.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5]


def scheduler(**options: Any) -> ValidationPlateau:
    optimizer = FairseqAdam(
        OmegaConf.structured(FairseqAdamConfig(lr=[0.1], tpu=False)), [nn.Parameter(torch.zeros(1))]
    )
    config = ReduceLROnPlateauLRScheduleConfig(lr=[0.1], maximize_best_checkpoint_metric=False, **options)
    return ValidationPlateau(OmegaConf.structured(config), optimizer)


def test_counts_like_torch() -> None:
    """Also when it is restored in between, and whatever happens at the ends of epochs."""
    expected = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.1)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(expected, factor=0.5, patience=2)
    ours = scheduler(lr_shrink=0.5, lr_patience=2)
    rates = []
    for number, loss in enumerate(LOSSES):
        plateau.step(loss)
        ours.count_validation(loss)
        assert ours.optimizer.get_lr() == expected.param_groups[0]["lr"], number
        assert ours.step(number, 100.0) == ours.optimizer.get_lr()
        rates.append(ours.optimizer.get_lr())
        restored = scheduler(lr_shrink=0.5, lr_patience=2)
        restored.load_state_dict(ours.state_dict())
        restored.optimizer.set_lr(ours.optimizer.get_lr())
        ours = restored
    assert rates == [0.1] * 4 + [0.05] * 4 + [0.025] * 3 + [0.0125] * 2


def test_nothing_counts_during_warm_up() -> None:
    ours = scheduler(lr_shrink=0.5, lr_patience=0, warmup_updates=4)
    ours.step_update(2)
    for _ in range(5):
        ours.count_validation(1.0)
    assert ours.optimizer.get_lr() == pytest.approx(0.05)
    ours.step_update(4)
    ours.step_update(5)
    ours.count_validation(1.0)
    ours.count_validation(1.0)
    assert ours.optimizer.get_lr() == pytest.approx(0.05)
