"""The optimizer torch_adam adds the weight decay to the gradient, and fairseq's adam does not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.optim.adam import FairseqAdam
from omegaconf import OmegaConf
from torch import nn

from fairseq_stack.errors import UserError
from fairseq_stack.kinds import parse_layer_list
from fairseq_stack.optim import TorchAdam
from fairseq_stack.optim.torch_adam import TorchAdamConfig

OPTIONS: dict[str, Any] = {"lr": [0.01], "weight_decay": 0.1, "tpu": False}


def trained(kind: type[FairseqAdam], decay: float, penalty: float = 0.0) -> torch.Tensor:
    """Parameters after five updates on a loss, with an L2 penalty on request."""
    torch.manual_seed(0)
    weight = nn.Parameter(torch.randn(3, 4, dtype=torch.float64))
    optimizer = kind(OmegaConf.structured(TorchAdamConfig(**{**OPTIONS, "weight_decay": decay})), [weight])
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


def test_half_precision_joins_all_parameters() -> None:
    parameters = [nn.Parameter(torch.zeros(1))]
    assert TorchAdam(OmegaConf.structured(TorchAdamConfig(**OPTIONS)), parameters).supports_flat_params
    with pytest.raises(UserError, match="--fp16-adam-stats"):
        TorchAdam(OmegaConf.structured(TorchAdamConfig(**OPTIONS, fp16_adam_stats=True)), parameters)
    with pytest.raises(UserError, match=r"--stack-lr-scale: .*; add --fp16-no-flatten-grads"):
        TorchAdam(OmegaConf.structured(TorchAdamConfig(**OPTIONS, stack_lr_scale=2.0)), parameters)


def test_without_decay_it_is_fairseqs_adam() -> None:
    assert torch.allclose(trained(TorchAdam, 0.0), trained(FairseqAdam, 0.0), rtol=0, atol=1e-6)  # it is in float32


def scaled(scale: float, layer: nn.Module) -> TorchAdam:
    config = TorchAdamConfig(lr=[0.01], tpu=False, stack_lr_scale=scale)
    return TorchAdam(OmegaConf.structured(config), [nn.Parameter(torch.zeros(1)), *layer.parameters()])


def test_the_rate_of_stacks() -> None:
    """The first update of Adam is the learning rate, whatever the gradients are."""
    stack = parse_layer_list("nd-2-3-5")[0].build(4, SimpleNamespace(stack_value_activation="sigmoid", stack_bias=True))
    optimizer = scaled(3.0, stack)
    for other in (optimizer, scaled(3.0, stack)):
        other.load_state_dict(optimizer.state_dict(), {"lr": 0.01})
        assert [group["lr"] for group in other.param_groups] == pytest.approx([0.01, 0.03])
    optimizer.set_lr(0.02)
    before = [p.detach().clone() for p in optimizer.params]
    optimizer.backward(sum(p.sum() for p in optimizer.params))
    optimizer.step()
    steps = [(x - p).abs().max().item() for x, p in zip(before, optimizer.params, strict=True)]
    assert steps == pytest.approx([0.02, *[0.06] * len(list(stack.parameters()))], rel=1e-3)


@pytest.mark.parametrize("scale", [0.0, 2.0])
def test_a_scale_without_meaning(scale: float) -> None:
    with pytest.raises(UserError, match=f"--stack-lr-scale: expected a positive number and .* a stack, got {scale}"):
        scaled(scale, nn.Linear(2, 2))
