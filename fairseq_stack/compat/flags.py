"""Options of fairseq that cannot work with these models or on this machine: one sentence, before anything is done."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from fairseq_stack.errors import UserError


def refuse_flags_that_cannot_work() -> None:
    """Refuse options of training and generation that would fail later, in the middle of fairseq or torch.

    Unnecessary with a fairseq that checks its options.
    """
    from fairseq.tasks import FairseqTask
    from fairseq.trainer import Trainer

    if not hasattr(Trainer.__init__, "__wrapped__"):
        Trainer.__init__ = _checking_first(Trainer.__init__, _check_precision, position=1)
    if not hasattr(FairseqTask.build_generator, "__wrapped__"):
        FairseqTask.build_generator = _checking_first(FairseqTask.build_generator, _check_generation, position=2)


def _checking_first(method: Callable[..., Any], check: Callable[[Any], None], position: int) -> Callable[..., Any]:
    """``method``, which checks its argument at ``position`` first (``self`` is at 0)."""

    @functools.wraps(method)
    def checking_first(*args: Any, **kwargs: Any) -> Any:
        if len(args) > position:
            check(args[position])
        return method(*args, **kwargs)

    return checking_first


def _check_precision(cfg: Any) -> None:
    """Check the configuration of a training."""
    common = cfg.common
    if common.bf16:
        raise UserError(
            "--bf16: fairseq uses bfloat16 on TPUs only, through torch_xla; leave it out, or on a GPU give --fp16"
        )
    on_cpu = common.cpu or not torch.cuda.is_available()
    if on_cpu and common.fp16 and not common.memory_efficient_fp16:
        raise UserError("--fp16 needs a GPU; on a CPU leave it out, which trains in float32")


def _check_generation(args: Any) -> None:
    """Check the options of ``fairseq-generate`` and ``fairseq-interactive``."""
    beam = getattr(args, "beam", 1)
    if beam < 1:
        raise UserError(f"--beam: expected at least 1, got {beam}")
    if getattr(args, "print_step", False):
        raise UserError(
            "--print-step is for models that refine their output in steps; this one generates from left to right: "
            "leave it out"
        )
