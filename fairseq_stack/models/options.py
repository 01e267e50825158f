"""What all families of models do with their options before a model is built from them."""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from omegaconf import OmegaConf

from fairseq_stack.compat.building import is_from_checkpoint
from fairseq_stack.errors import UserError
from fairseq_stack.kinds import Layer, kinds


def plain_namespace(args: Any) -> Namespace:
    """The options as a namespace, whatever form fairseq holds them in: other forms lose our own options."""
    if OmegaConf.is_config(args):
        return Namespace(**OmegaConf.to_container(args, resolve=True))
    return args


def flag(name: str) -> str:
    """The flag of an option."""
    return f"--{name.replace('_', '-')}"


def check_kinds(given_by: str, layers: Sequence[Layer], model: str) -> None:
    """Raise UserError if a model cannot have one of the layers that a flag gives."""
    for layer in layers:
        if layer.kind.models is not None and model not in layer.kind.models:
            raise UserError(
                f"{given_by}: {layer} is {layer.kind.title}, which {model} cannot have: it needs --arch "
                f"{' or '.join(layer.kind.models)}"
            )


def settle_depth_limit(args: Namespace, layers: Sequence[Layer]) -> None:
    """Check the option ``--stack-depth-limit`` of a transformer with these layers; older checkpoints lack it.

    Raises:
        UserError: the limit is not positive, or no layer has a stack that it limits.
    """
    args.stack_depth_limit = limit = getattr(args, "stack_depth_limit", None)
    if limit is None:
        return
    if limit < 1:
        raise UserError(f"--stack-depth-limit: expected at least 1, got {limit}")
    if not any("stack_depth_limit" in layer.kind.options.values() for layer in layers):
        limited = " or ".join(kind.name for kind in kinds() if "stack_depth_limit" in kind.options.values())
        listed = ",".join(map(str, layers))
        raise UserError(f"--stack-depth-limit has no effect: expected a layer of the kind {limited}, got {listed}")


def initial_scale(args: Namespace, default: float) -> float:
    """The scale of a new model's parameters: ``--stack-init-scale``.

    Raises:
        UserError: the scale is not a positive number, or ``--stack-init fairseq`` does not use it.
    """
    scale: float | None = args.stack_init_scale
    if scale is None:
        return default
    if not 0 < scale < math.inf:
        raise UserError(f"--stack-init-scale: expected a positive number, got {scale}")
    if args.stack_init == "fairseq" and not is_from_checkpoint():
        raise UserError(
            f"--stack-init-scale {scale} has no effect with --stack-init fairseq: expected another --stack-init, or no "
            "scale"
        )
    return scale


def check_compact_vocabulary(args: Namespace) -> None:
    """Raise UserError for an option of the compact vocabulary without the vocabulary."""
    if args.compact_vocab_unk and not args.compact_vocab:
        raise UserError("--compact-vocab-unk needs --compact-vocab")
