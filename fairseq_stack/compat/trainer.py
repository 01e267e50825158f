"""``fairseq.trainer``: training resumes exactly, ends where it diverges, and never saves what is not finite."""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from fairseq_stack.compat.configs import EXACT, INTERVAL
from fairseq_stack.compat.fairseq_cli_train import early_stopping
from fairseq_stack.compat.replacing import replaces
from fairseq_stack.errors import UserError

_UNKNOWN_REASON = "Cannot load model parameters from checkpoint"
_EARLY_STOPPING = "early_stopping"  # in the extra state of a checkpoint
_NUM_SENTENCES = "num_sentences"  # also there
_EMA_COUNT = "ema_update_freq_counter"
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # parameters of mallopt
_REMEDY = (
    "lower --lr, set --clip-norm, or look for damage in the data or in the checkpoint that training started from; "
    "earlier checkpoints are unchanged"
)

_DERIVED = ("bleu", "ppl", "f1", "matthews", "pearson")


@replaces("fairseq.trainer:Trainer.__init__")
def init(original: Any, self: Any, cfg: Any, task: Any, model: Any, criterion: Any, *args: Any, **kwargs: Any) -> None:
    """Reject ``--bf16``, ``--fp16`` without a GPU and exact metrics that are rounded; keep freed memory.

    They fail later, some after an epoch. Sentences are counted from here on.

    On a CPU, the C library would return the memory of large tensors to the system in each update and get it again.

    Unnecessary with a fairseq that checks its options, and a PyTorch that keeps its memory.
    """
    _check_precision(cfg.common)
    metric = cfg.checkpoint.best_checkpoint_metric
    if cfg.checkpoint.get(EXACT, False) and metric in _DERIVED:
        raise UserError(
            f"--exact-best-checkpoint-metric: {metric} is rounded when it is computed; leave the option out"
        )
    original(self, cfg, task, model, criterion, *args, **kwargs)
    if not self.cuda:
        _keep_freed_memory()
    self.num_sentences = 0
    self.has_passed_interval = False


def _check_precision(common: Any) -> None:
    if common.bf16:
        raise UserError(
            "--bf16: fairseq uses bfloat16 on TPUs only, through torch_xla; leave it out, or use --fp16 on a GPU"
        )
    on_cpu = common.cpu or not torch.cuda.is_available()
    if on_cpu and common.fp16 and not common.memory_efficient_fp16:
        raise UserError("--fp16 needs a GPU; on a CPU leave it out to train in float32")


def _keep_freed_memory() -> None:
    """Let glibc reuse blocks of up to 1 GiB; other C libraries decide for themselves."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    for parameter, value in ((_MMAP_THRESHOLD, 2**30), (_TRIM_THRESHOLD, 2**31 - 1), (_TOP_PAD, 2**26)):
        mallopt(parameter, value)


@replaces("fairseq.trainer:Trainer._set_seed")
def set_seed(original: Any, self: Any) -> None:
    """In training on a CPU, seed only the CPU's generator, which saves up to 1.5 ms per update.

    Where CUDA has not been started, PyTorch notes each call that seeds GPUs with its traceback. The CPU's generator
    gets the same seed.

    Unnecessary with a PyTorch that does not trace these calls.
    """
    if self.cuda or self.tpu:
        original(self)
    else:
        torch.default_generator.manual_seed(self.cfg.common.seed + self.get_num_updates())


@replaces("fairseq.trainer:NanDetector")
def nan_detector(original: Any, *args: Any, **kwargs: Any) -> Any:
    """Do not rerun a failed update with hooks, which fail on modules whose outputs are dictionaries.

    Unnecessary with a fairseq whose hooks accept dictionaries.
    """
    return contextlib.nullcontext()


def _infinite_loss(logged: dict[str, Any] | None) -> str:
    """What is wrong with the loss that a step of fairseq's trainer has logged, or an empty string."""
    loss = float((logged or {}).get("loss", 0.0))
    return "" if math.isfinite(loss) else f"the loss is {loss}"


def _infinite_parameter(model: nn.Module) -> str | None:
    """The name of the first parameter that is not finite, or None."""
    return next((name for name, value in model.named_parameters() if not value.isfinite().all()), None)


def _infinite_value(model: nn.Module) -> str:
    """Which parameter is not finite, or which gradient's norm."""
    parameter = _infinite_parameter(model)
    if parameter is not None:
        return f"the parameter {parameter} is not finite"
    norms = {name: value.grad.norm().item() for name, value in model.named_parameters() if value.grad is not None}
    for name, norm in reversed(norms.items()):  # the backward pass reaches the last parameter first
        if not math.isfinite(norm):
            return f"the norm of the gradient of {name} is {norm}"
    return "all parameters and gradients are finite"


@replaces("fairseq.trainer:Trainer.train_step")
def train_step(original: Any, self: Any, samples: list[Any], raise_oom: bool = False) -> Any:
    """End training when a loss or gradient is not finite, and name the parameter or gradient that is not.

    Unnecessary with a fairseq that names the gradient or parameter and ends.
    """
    update = self.get_num_updates() + 1
    try:
        logged = original(self, samples, raise_oom)
        problem = _infinite_loss(logged)
    except FloatingPointError as error:
        problem = str(error).splitlines()[0]
    if problem:
        raise UserError(
            f"training diverged at update {update} ({problem}): {_infinite_value(self.get_model())}; {_REMEDY}"
        )
    return logged


@replaces("fairseq.trainer:Trainer.valid_step")
def valid_step(original: Any, self: Any, sample: Any, raise_oom: bool = False) -> Any:
    """End training when a validation loss is not finite.

    fairseq continues, forgets the best loss, and saves parameters that are NaN.

    Unnecessary with a fairseq that ends.
    """
    logged = original(self, sample, raise_oom)
    problem = _infinite_loss(logged)
    if problem:
        raise UserError(
            f"training diverged during validation after update {self.get_num_updates()} ({problem}): "
            f"{_infinite_value(self.get_model())}; {_REMEDY}"
        )
    return logged


@replaces("fairseq.trainer:Trainer._reduce_and_log_stats")
def reduce_and_log_stats(
    original: Any, self: Any, logging_outputs: Any, sample_size: Any, grad_norm: Any = None
) -> Any:
    """Count the sentences of all workers for ``--validate-interval-sentences``.

    Unnecessary with a fairseq that has such an option.
    """
    interval = self.cfg.dataset.get(INTERVAL, 0)
    if interval > 0 and grad_norm is not None:  # an update; validation has no gradient
        before = self.num_sentences
        self.num_sentences += _number_of_sentences(logging_outputs)
        self.has_passed_interval = self.num_sentences // interval > before // interval
    return original(self, logging_outputs, sample_size, grad_norm)


def _number_of_sentences(logging_outputs: list[dict[str, Any]]) -> int:
    """The sentences of an update, of all workers."""
    if not all("nsentences" in output for output in logging_outputs):
        raise UserError(
            "--validate-interval-sentences: expected a criterion that logs nsentences, the number of sentences; give "
            "--validate-interval-updates and --save-interval-updates instead"
        )
    return sum(int(output["nsentences"]) for output in logging_outputs)


@replaces("fairseq.trainer:Trainer.save_checkpoint")
def save_checkpoint(original: Any, self: Any, filename: str, extra_state: dict[str, Any]) -> Any:
    """Save the counts of ``--patience``, sentences and ``--ema-update-freq``, but neither ``crash.pt`` nor parameters
    that are not finite.

    Training cannot resume from ``crash.pt``.

    Unnecessary with a fairseq that saves the count of ``--patience`` and rejects parameters that are not finite.
    """
    if os.path.basename(filename) == "crash.pt":
        return None
    parameter = _infinite_parameter(self.get_model())
    if parameter is not None:
        raise UserError(
            f"training diverged: the parameter {parameter} is not finite after update {self.get_num_updates()}, "
            f"so {filename} is not written; {_REMEDY}"
        )
    counted = early_stopping()
    kept = {name: counted[name] for name in ("best", "num_runs") if name in counted}
    extra_state = {**extra_state, _NUM_SENTENCES: self.num_sentences, _EARLY_STOPPING: kept}
    if self.cfg.ema.store_ema:
        extra_state[_EMA_COUNT] = self.ema.update_freq_counter
    return original(self, filename, extra_state)


@replaces("fairseq.trainer:Trainer.load_checkpoint")
def load_checkpoint(
    original: Any,
    self: Any,
    filename: str,
    reset_optimizer: bool = False,
    reset_lr_scheduler: bool = False,
    optimizer_overrides: dict[str, Any] | None = None,
    reset_meters: bool = False,
) -> Any:
    """Restore the counts that are saved and the scheduler step that follows a saved epoch, and begin the average that a
    checkpoint lacks (``--store-ema``).

    fairseq saves the checkpoint of an epoch before the scheduler sees the epoch's validation loss, so the scheduler of
    a resumed run never sees it. fairseq also replaces the model's error by "please ensure that the architectures
    match", which misleads users who have changed a dictionary: here the error is the model's.

    Unnecessary with a fairseq that steps the scheduler before it saves, and passes on the model's error.
    """
    try:
        with _average_of(self, filename):
            extra_state = original(
                self, filename, reset_optimizer, reset_lr_scheduler, optimizer_overrides, reset_meters=reset_meters
            )
    except Exception as error:
        reason = error.__context__
        if reason is None or not str(error).startswith(_UNKNOWN_REASON):
            raise
        raise UserError(f"cannot continue from {filename}: {reason}") from reason
    if reset_optimizer:  # another training run, which has taken no time so far
        self._previous_training_time = 0
    if extra_state is None or reset_optimizer:
        return extra_state
    if not reset_meters:  # the count belongs to the best loss so far, as in fairseq
        early_stopping().update(extra_state.get(_EARLY_STOPPING, {}))
    self.num_sentences = extra_state.get(_NUM_SENTENCES, 0)
    if self.cfg.ema.store_ema:
        self.ema.update_freq_counter = extra_state.get(_EMA_COUNT, 0)
    place = extra_state["train_iterator"]
    if not reset_lr_scheduler and place["epoch"] > 1 and place.get("iterations_in_epoch") == 0:
        self.lr_step(place["epoch"] - 1, extra_state.get("val_loss"))
    return extra_state


@contextlib.contextmanager
def _average_of(trainer: Any, filename: str) -> Iterator[None]:
    """Load a checkpoint, and begin the average of ``--store-ema`` with its parameters if it has none.

    fairseq deletes these parameters before it begins with them.
    """
    from fairseq import checkpoint_utils

    options = trainer.cfg.ema
    if not (options.store_ema and os.path.isfile(filename)):
        yield
        return
    lacks = "ema" not in checkpoint_utils.load_checkpoint_to_cpu(filename)["extra_state"]
    options.store_ema = not lacks
    yield
    options.store_ema = True
    if lacks:
        trainer.ema.restore(trainer.get_model().state_dict(), build_fp32_params=options.ema_fp32)
