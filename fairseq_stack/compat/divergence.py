"""Training ends when values stop being finite. A message says where, and no checkpoint keeps such values."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from fairseq_stack.compat.wrapping import Function, wrap_once
from fairseq_stack.errors import UserError

_REMEDY = (
    "lower --lr, set --clip-norm, or look for damage in the data or in the checkpoint that training started from; "
    "earlier checkpoints are unchanged"
)
_MOST_NAMES = 3


def end_training_that_diverges() -> None:
    """Let training end with one message when a loss, a gradient or a parameter is not finite.

    fairseq saves ``crash.pt``, from which training cannot resume. It then runs the update again with hooks that fail
    (StopIteration) on modules whose outputs are dictionaries, such as encoders. If only a validation loss is NaN,
    fairseq continues training, forgets the best loss, and saves parameters that are NaN. Unnecessary with a fairseq
    that ends with the name of the loss, gradient or parameter that is not finite.
    """
    from fairseq import trainer

    trainer.NanDetector = contextlib.nullcontext
    wrap_once(trainer.Trainer, "train_step", _ending_at_update)
    wrap_once(trainer.Trainer, "valid_step", _ending_at_validation)
    wrap_once(trainer.Trainer, "save_checkpoint", _saving_finite_parameters)


def _ending_at_update(train_step: Function) -> Function:
    def train_step_or_end(self: Any, samples: list[Any], raise_oom: bool = False) -> Any:
        update = self.get_num_updates() + 1
        try:
            logged = train_step(self, samples, raise_oom)
            problem = _infinite_loss(logged)
        except FloatingPointError as error:
            problem = str(error).splitlines()[0]
        if problem:
            raise UserError(f"training diverged at update {update} ({problem}): {_origin(self, samples)}; {_REMEDY}")
        return logged

    return train_step_or_end


def _ending_at_validation(valid_step: Function) -> Function:
    def valid_step_or_end(self: Any, sample: Any, raise_oom: bool = False) -> Any:
        logged = valid_step(self, sample, raise_oom)
        problem = _infinite_loss(logged)
        if problem:
            origin = _origin(self, [sample], training=False)
            raise UserError(
                f"training diverged during validation after update {self.get_num_updates()} ({problem}): {origin}; "
                f"{_REMEDY}"
            )
        return logged

    return valid_step_or_end


def _saving_finite_parameters(save_checkpoint: Function) -> Function:
    def save_finite_parameters(self: Any, filename: str, extra_state: dict[str, Any]) -> Any:
        if os.path.basename(filename) == "crash.pt":
            return None
        parameter = _infinite_parameter(self.get_model())
        if parameter is not None:
            raise UserError(
                f"training diverged: the parameter {parameter} is not finite after update {self.get_num_updates()}, "
                f"so {filename} is not written; {_REMEDY}"
            )
        return save_checkpoint(self, filename, extra_state)

    return save_finite_parameters


def refuse_checkpoints_that_diverged() -> None:
    """Name the checkpoint and the parameters that are not finite, instead of continuing with outputs that are NaN.

    Unnecessary with a fairseq that checks for this.
    """
    from fairseq import checkpoint_utils

    wrap_once(checkpoint_utils, "load_checkpoint_to_cpu", _refusing_infinite_parameters)


def _refusing_infinite_parameters(load_checkpoint_to_cpu: Function) -> Function:
    def load_finite_parameters(path: str, *args: Any, **kwargs: Any) -> Any:
        state = load_checkpoint_to_cpu(path, *args, **kwargs)
        infinite = [name for name, value in (state.get("model") or {}).items() if not _is_finite(name, value)]
        if infinite:
            more = f" and {len(infinite) - _MOST_NAMES} more" if len(infinite) > _MOST_NAMES else ""
            raise UserError(
                f"the checkpoint {path} has parameters that are not finite: {', '.join(infinite[:_MOST_NAMES])}{more}; "
                "it is damaged, or its training diverged: use an earlier one"
            )
        return state

    return load_finite_parameters


def is_uninitialised(name: str) -> bool:
    """Whether the numbers of a buffer mean nothing: fairseq keeps such buffers for their dtype, uninitialised."""
    return name.endswith("_float_tensor")


def _is_finite(name: str, value: Any) -> bool:
    return is_uninitialised(name) or not isinstance(value, Tensor) or bool(value.isfinite().all())


def _infinite_loss(logged: dict[str, Any] | None) -> str:
    loss = float((logged or {}).get("loss", 0.0))
    return "" if math.isfinite(loss) else f"the loss is {loss}"


def _infinite_parameter(model: nn.Module) -> str | None:
    return next((name for name, value in model.named_parameters() if not value.isfinite().all()), None)


class _InfiniteOutput(Exception):
    """Ends a run of a model at the first output that is not finite."""


def _origin(trainer: Any, samples: list[Any], training: bool = True) -> str:
    """Where values stop being finite, found by computing the losses of ``samples`` and their gradients again."""
    model, criterion = trainer.get_model(), trainer.get_criterion()
    parameter = _infinite_parameter(model)
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
