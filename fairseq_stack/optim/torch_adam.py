"""``--optimizer torch_adam``: Adam as PyTorch defines it, with another learning rate for stacks on request.

fairseq reads the types of options at run time: annotations must not be postponed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from fairseq.optim import FairseqOptimizer, register_optimizer
from fairseq.optim.adam import FairseqAdam, FairseqAdamConfig
from torch import nn

from fairseq_stack.errors import UserError
from fairseq_stack.modules.stack_attention import PARAMETERS_OF_STACKS


@dataclass
class TorchAdamConfig(FairseqAdamConfig):
    """The options of the optimizer."""

    stack_lr_scale: float = field(
        default=1.0, metadata={"help": "what the learning rate is multiplied by for the parameters of stacks"}
    )


@register_optimizer("torch_adam", dataclass=TorchAdamConfig)
class TorchAdam(FairseqAdam):
    """``torch.optim.Adam``: ``--weight-decay`` λ adds λ θ to the gradient, as a penalty of λ/2 |θ|² on the loss would.

    fairseq's ``adam`` subtracts lr λ θ from the parameters instead, which is nearly nothing for the same λ.

    Raises:
        UserError: an option is for fairseq's ``adam``, or the scale is not positive or has no effect.
    """

    def __init__(self, cfg: TorchAdamConfig, params: Iterable[nn.Parameter]) -> None:
        if cfg.fp16_adam_stats or cfg.use_old_adam:
            raise UserError("--fp16-adam-stats and --use-old-adam are for --optimizer adam; leave them out")
        FairseqOptimizer.__init__(self, cfg)
        scale = cfg.stack_lr_scale
        groups: list[Any] = list(params)
        if scale != 1:
            of_stacks = [p for p in groups if getattr(p, "param_group", None) == PARAMETERS_OF_STACKS]
            if len(groups) == 1:
                raise UserError("--stack-lr-scale: half precision joins all parameters; add --fp16-no-flatten-grads")
            if scale <= 0 or not of_stacks:
                raise UserError(f"--stack-lr-scale: expected a positive number and a model with a stack, got {scale}")
            others = set(groups).difference(of_stacks)
            groups = [{"params": [p for p in groups if p in others]}, {"params": of_stacks}]
        self._optimizer = torch.optim.Adam(groups, **self.optimizer_config)
        self.set_lr(self.get_lr())

    def set_lr(self, lr: float) -> None:
        """Set the learning rate; of stacks, in proportion."""
        super().set_lr(lr)
        for of_stacks in self.param_groups[1:]:
            of_stacks["lr"] = self.cfg.stack_lr_scale * lr

    def load_state_dict(self, state_dict: dict[str, Any], optimizer_overrides: dict[str, Any] | None = None) -> None:
        """Continue from a checkpoint."""
        super().load_state_dict(state_dict, optimizer_overrides)
        self.set_lr(self.get_lr())

    @property
    def supports_flat_params(self) -> bool:
        """The parameters may be one vector, as with ``--fp16``: each number is updated alone."""
        return True
