"""In place of ``fairseq.nan_detector``: where values of a model stop being finite."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn


def infinite_loss(logged: dict[str, Any] | None) -> str:
    """What is wrong with the loss that a step of fairseq's trainer has logged, or an empty string."""
    loss = float((logged or {}).get("loss", 0.0))
    return "" if math.isfinite(loss) else f"the loss is {loss}"


def infinite_parameter(model: nn.Module) -> str | None:
    """The name of the first parameter that is not finite, or None."""
    return next((name for name, value in model.named_parameters() if not value.isfinite().all()), None)


class _InfiniteOutput(Exception):
    """Ends a run of a model at the first output that is not finite."""


def origin(trainer: Any, samples: list[Any], training: bool = True) -> str:
    """Where values stop being finite, found by computing the losses of ``samples`` and their gradients again."""
    model, criterion = trainer.get_model(), trainer.get_criterion()
    parameter = infinite_parameter(model)
    if parameter is not None:
        return f"the parameter {parameter} is not finite"
    trainer.zero_grad()
    trainer._set_seed()  # for the same dropout as before
    gradients: list[str] = []  # the backward pass calls hooks from the last module to the first
    try:
        with _watching(model, gradients):
            for sample in samples:
                sample, _ = trainer._prepare_sample(sample)
                if training:
                    update = trainer.get_num_updates()
                    loss, *_ = trainer.task.train_step(sample, model, criterion, trainer.optimizer, update)
                else:
                    loss, *_ = trainer.task.valid_step(sample, model, criterion)
                if not loss.isfinite():
                    return "all module outputs are finite, but the loss is not"
    except _InfiniteOutput as error:
        return f"the first value that is not finite is in the output of {error}"
    if gradients:
        return f"all outputs are finite, but the gradient of the output of {gradients[0]} is not"
    return _origin_in_parameters(model)


def _origin_in_parameters(model: nn.Module) -> str:
    norms = {name: value.grad.norm().item() for name, value in model.named_parameters() if value.grad is not None}
    for name, norm in reversed(norms.items()):  # the backward pass reaches the last parameter first
        if not math.isfinite(norm):
            return f"all outputs are finite, but the norm of the gradient of {name} is {norm}"
    return "when computed again, all outputs and gradients are finite"


@contextlib.contextmanager
def _watching(model: nn.Module, gradients: list[str]) -> Iterator[None]:
    """Raise :class:`_InfiniteOutput` at the first output that is not finite, and note modules by their gradients.

    A module is noted in ``gradients`` if the gradient of one of its outputs is not finite. An output of -inf counts as
    finite: it is the log-probability of a symbol that cannot occur.
    """

    def watch(name: str, module: nn.Module) -> Any:
        kind = f"{name or 'the model'} ({type(module).__name__})"

        def note(gradient: Tensor) -> None:
            if not gradient.isfinite().all():
                gradients.append(kind)

        def look(module: nn.Module, inputs: Any, output: Any) -> None:
            for value in _tensors(output):
                if value.isnan().any() or value.isposinf().any():
                    raise _InfiniteOutput(kind)
                if value.requires_grad:
                    value.register_hook(note)

        return module.register_forward_hook(look)

    hooks = [watch(name, module) for name, module in model.named_modules()]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _tensors(output: Any) -> Iterator[Tensor]:
    """The tensors of floating-point numbers in nested containers."""
    if isinstance(output, Tensor):
        if torch.is_floating_point(output):
            yield output
    elif isinstance(output, dict | list | tuple):
        for value in output.values() if isinstance(output, dict) else output:
            yield from _tensors(value)
