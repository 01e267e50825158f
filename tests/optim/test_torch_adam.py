"""The optimizer torch_adam adds the weight decay to the gradient, and fairseq's adam does not."""

from __future__ import annotations

import pytest
import torch
from fairseq.optim.adam import FairseqAdam, FairseqAdamConfig
from omegaconf import OmegaConf
from torch import nn

from fairseq_stack.errors import UserError
from fairseq_stack.optim import TorchAdam

OPTIONS = {"lr": [0.01], "weight_decay": 0.1, "tpu": False}


def trained(kind: type[FairseqAdam], decay: float, penalty: float = 0.0) -> torch.Tensor:
    """Parameters after five updates on a loss, with an L2 penalty on request."""
    torch.manual_seed(0)
    weight = nn.Parameter(torch.randn(3, 4, dtype=torch.float64))
    optimizer = kind(OmegaConf.structured(FairseqAdamConfig(**{**OPTIONS, "weight_decay": decay})), [weight])
    for _ in range(5):
        loss = weight.sin().sum() + penalty / 2 * weight.square().sum()
        optimizer.zero_grad()
        optimizer.backward(loss)
        optimizer.step()
    return weight.detach()


def test_weight_decay_is_a_penalty_on_the_loss() -> None:
    expected = trained(TorchAdam, 0.0, penalty=0.1)
    assert torch.allclose(trained(TorchAdam, 0.1), expected, rtol=0, atol=1e-12)
    assert not torch.allclose(trained(FairseqAdam, 0.1), expected, rtol=0, atol=1e-3)


def test_it_works_with_half_precision_but_keeps_its_statistics() -> None:
    parameters = [nn.Parameter(torch.zeros(1))]
    assert TorchAdam(OmegaConf.structured(FairseqAdamConfig(**OPTIONS)), parameters).supports_flat_params
    with pytest.raises(UserError, match="--fp16-adam-stats"):
        TorchAdam(OmegaConf.structured(FairseqAdamConfig(**OPTIONS, fp16_adam_stats=True)), parameters)


def test_without_decay_it_is_fairseqs_adam() -> None:
    assert torch.allclose(trained(TorchAdam, 0.0), trained(FairseqAdam, 0.0), rtol=0, atol=1e-6)  # it is in float32
