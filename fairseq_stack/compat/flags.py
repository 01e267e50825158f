"""Refuse fairseq's options that cannot work with these models or on this machine, or have no effect."""

from __future__ import annotations

from typing import Any

import torch

from fairseq_stack.compat.wrapping import Function, wrap_once
from fairseq_stack.errors import UserError


def refuse_flags_that_cannot_work() -> None:
    """Refuse options of training and generation that would fail later, in the middle of fairseq or torch.

    Unnecessary with a fairseq that checks its options.
    """
    from fairseq.tasks import FairseqTask
    from fairseq.trainer import Trainer

    wrap_once(Trainer, "__init__", _checking_precision)
    wrap_once(FairseqTask, "build_generator", _checking_generation)


def refuse_flags_without_effect() -> None:
    """Refuse a ``--task`` or ``--criterion`` of ``fairseq-validate`` that differs from the checkpoint's.

    It scores with the checkpoint's, whatever it is given. Unnecessary with a fairseq that heeds these options.
    """
    from fairseq import checkpoint_utils

    wrap_once(checkpoint_utils, "load_model_ensemble_and_task", _checking_overrides)


def _checking_overrides(load: Function) -> Function:
    def load_and_check(filenames: Any, arg_overrides: Any = None, *args: Any, **kwargs: Any) -> Any:
        models, cfg, task = load(filenames, arg_overrides, *args, **kwargs)
        for name in ("task", "criterion"):
            trained, given = getattr(cfg[name], "_name", None), (arg_overrides or {}).get(name)
            if trained is not None and given not in (None, trained):
                raise UserError(
                    f"--{name} {given} has no effect: the model is scored with the {name} of its training, expected "
                    f"--{name} {trained}"
                )
        return models, cfg, task

    return load_and_check


def _checking_precision(init: Function) -> Function:
    def init_after_check(self: Any, cfg: Any, *args: Any, **kwargs: Any) -> None:
        _check_precision(cfg)
        init(self, cfg, *args, **kwargs)

    return init_after_check


def _checking_generation(build_generator: Function) -> Function:
    def build_generator_after_check(self: Any, models: Any, args: Any, *others: Any, **kwargs: Any) -> Any:
        _check_generation(args)
        return build_generator(self, models, args, *others, **kwargs)

    return build_generator_after_check


def _check_precision(cfg: Any) -> None:
    """Check the configuration of a training run."""
    common = cfg.common
    if common.bf16:
        raise UserError(
            "--bf16: fairseq uses bfloat16 on TPUs only, through torch_xla; leave it out, or use --fp16 on a GPU"
        )
    on_cpu = common.cpu or not torch.cuda.is_available()
    if on_cpu and common.fp16 and not common.memory_efficient_fp16:
        raise UserError("--fp16 needs a GPU; on a CPU leave it out to train in float32")


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
