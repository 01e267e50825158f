"""Training on a CPU seeds the CPU's generator alone."""

from __future__ import annotations

from typing import Any

import torch

from fairseq_stack.compat.wrapping import Function, wrap_once


def seed_only_what_training_uses() -> None:
    """Let training on a CPU leave the generators of GPUs alone.

    fairseq seeds all generators before each update. Where CUDA has not been started, PyTorch notes each of these calls
    with its traceback, to seed the GPUs later: up to 1.5 ms, a fifth of the time of an update of a network with 42
    parameters. The CPU's generator gets the same seed. Unnecessary with a PyTorch that does not trace these calls.
    """
    from fairseq.trainer import Trainer

    wrap_once(Trainer, "_set_seed", _seeding_the_cpu)


def _seeding_the_cpu(set_seed: Function) -> Function:
    def set_seed_of_cpu(self: Any) -> None:
        if self.cuda or self.tpu:
            set_seed(self)
        else:
            torch.default_generator.manual_seed(self.cfg.common.seed + self.get_num_updates())

    return set_seed_of_cpu
