"""``--optimizer torch_adam``: Adam as PyTorch defines it."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from fairseq.optim import FairseqOptimizer, register_optimizer
from fairseq.optim.adam import FairseqAdam, FairseqAdamConfig
from torch import nn

from fairseq_stack.errors import UserError


@register_optimizer("torch_adam", dataclass=FairseqAdamConfig)
class TorchAdam(FairseqAdam):
    """``torch.optim.Adam``: ``--weight-decay`` λ adds λ θ to the gradient, as a penalty of λ/2 |θ|² on the loss would.

    fairseq's ``adam`` subtracts lr λ θ from the parameters instead, which is nearly nothing for the same λ.
    """

    def __init__(self, cfg: FairseqAdamConfig, params: Iterable[nn.Parameter]) -> None:
        if cfg.fp16_adam_stats or cfg.use_old_adam:
            raise UserError("--fp16-adam-stats and --use-old-adam are for --optimizer adam; leave them out")
        FairseqOptimizer.__init__(self, cfg)
        self._optimizer = torch.optim.Adam(params, **self.optimizer_config)

    @property
    def supports_flat_params(self) -> bool:
        """Whether the parameters may be one vector, as with ``--fp16``: each number is updated alone."""
        return True
