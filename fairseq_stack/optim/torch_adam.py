"""``--optimizer torch_adam``: Adam as PyTorch defines it."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from fairseq.optim import FairseqOptimizer, register_optimizer
from fairseq.optim.adam import FairseqAdam, FairseqAdamConfig
from torch import nn


@register_optimizer("torch_adam", dataclass=FairseqAdamConfig)
class TorchAdam(FairseqAdam):
    """``torch.optim.Adam``: ``--weight-decay`` λ adds λ θ to the gradient, as a penalty of λ/2 |θ|² on the loss would.

    fairseq's ``adam`` subtracts lr λ θ from the parameters instead, which is nearly nothing for the same λ.
    """

    def __init__(self, cfg: FairseqAdamConfig, params: Iterable[nn.Parameter]) -> None:
        FairseqOptimizer.__init__(self, cfg)
        self._optimizer = torch.optim.Adam(params, **self.optimizer_config)
