"""``fairseq.checkpoint_utils``: checkpoints are whole, say what is wrong with them, and are not mistaken for others."""

from __future__ import annotations

import logging
import math
import os
import pickle
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from fairseq_stack.companions import (
    companions_of_training,
    missing_companions,
    note_languages,
    require_same_task,
    write,
)
from fairseq_stack.compat.fairseq_cli_train import early_stopping
from fairseq_stack.compat.file_io import write_whole
from fairseq_stack.compat.replacing import replaces
from fairseq_stack.errors import UserError

logger = logging.getLogger(__name__)
_DEFAULT = "checkpoint_last.pt"
_MOST_NAMES = 3
_STREAM = "stack_truncated_bptt"


@replaces("fairseq.checkpoint_utils:torch_persistent_save")
def torch_persistent_save(original: Any, obj: object, filename: str, async_write: bool = False) -> None:
    """Write a checkpoint to a temporary file and rename it once it is on disk, so that each ``*.pt`` is complete.

    A second attempt of fairseq's appends to what the first has written.

    Unnecessary with a fairseq that renames, and starts a second attempt with an empty file.
    """
    from fairseq.file_io import PathManager

    if async_write or PathManager.path_requires_pathmanager(filename):
        original(obj, filename, async_write)
    else:
        write_whole(filename, lambda file: torch.save(obj, file))


@replaces("fairseq.checkpoint_utils:verify_checkpoint_directory")
def verify_checkpoint_directory(original: Any, save_dir: str) -> None:
    """Remove unfinished files of an earlier process; keep a file ``dummy`` of the user, which fairseq overwrites.

    Raises:
        UserError: the folder cannot be made, or no file can be made in it.

    Unnecessary with a fairseq that renames finished checkpoints and tests the folder with a temporary file.
    """
    try:
        if not os.path.exists(save_dir):
            os.makedirs(save_dir, exist_ok=True)
        tempfile.TemporaryFile(dir=save_dir).close()
    except OSError as error:
        raise UserError(f"--save-dir {save_dir}: {error.strerror}") from error
    for unfinished in Path(save_dir).glob("checkpoint*.pt.tmp"):
        unfinished.unlink(missing_ok=True)


@replaces("fairseq.checkpoint_utils:save_checkpoint")
def save_checkpoint(original: Any, cfg: Any, trainer: Any, *args: Any, **kwargs: Any) -> Any:
    """Copy the dictionaries and other companion files of a model next to its first checkpoint.

    Its checkpoints can then be used without the data.

    For stack models. Unnecessary with a fairseq that saves dictionaries in its checkpoints.
    """
    if not cfg.no_save:
        write(getattr(trainer, "missing_companions", {}))
        trainer.missing_companions = {}
    return original(cfg, trainer, *args, **kwargs)


@replaces("fairseq.checkpoint_utils:load_checkpoint")
def load_checkpoint(original: Any, cfg: Any, trainer: Any, **passthrough: Any) -> Any:
    """Reject a ``--restore-file`` that does not exist, and end a finished run without a further update.

    fairseq would start afresh without a word. It checks ``--max-update`` and ``--stop-time-hours`` only after it has
    made and saved an update: each start moves ``checkpoint_last.pt`` one update beyond the end. It also forgets the
    validations that ``--patience`` has counted.

    For every model; a stack model also reads its companions. Unnecessary with a fairseq that starts from scratch only
    if ``checkpoint_last.pt`` is missing, and checks its limits before the first update.
    """
    _require_restore_file(cfg.restore_file)
    extra_state, epoch_itr = original(cfg, trainer, **passthrough)
    reached = _limits_reached(trainer, epoch_itr) if extra_state is not None else {}
    if reached:
        _say_finished(cfg, trainer, reached)
    # After loading, since a checkpoint of another vocabulary has its own error.
    if _has_companions(trainer.model) and trainer.is_data_parallel_master and not cfg.no_save:
        trainer.missing_companions = missing_companions(companions_of_training(trainer.cfg), Path(cfg.save_dir))
        note_languages(trainer)
    # fairseq trains while next_epoch_idx <= max_epoch, and max_epoch is infinite if it is not given.
    return extra_state, SimpleNamespace(next_epoch_idx=math.nan) if reached else epoch_itr


def _require_restore_file(path: str) -> None:
    from fairseq.file_io import PathManager

    if path != _DEFAULT and not PathManager.isfile(path):
        problem = "is a folder: give a file in it" if os.path.isdir(path) else "does not exist: give another file"
        raise UserError(f"--restore-file: {path} {problem}, or leave the option out to start from scratch")


def _has_companions(model: Any) -> bool:
    return bool(getattr(model, "has_companions", False))


def _limits_reached(trainer: Any, epoch_itr: Any) -> dict[str, str]:
    """The options whose limits have been reached, each with its value."""
    limits, checkpoint = trainer.cfg.optimization, trainer.cfg.checkpoint
    max_update, max_epoch = limits.max_update or math.inf, limits.max_epoch or math.inf
    hours = trainer._previous_training_time / 3600  # the same on all workers
    bad_validations = early_stopping().get("num_runs", 0)
    learning_rate = trainer.get_lr()
    reached = {
        "--max-update": (trainer.get_num_updates() >= max_update, f"{max_update}"),
        "--max-epoch": (epoch_itr.next_epoch_idx > max_epoch, f"{max_epoch}"),
        "--stop-min-lr": (learning_rate <= limits.stop_min_lr, f"{limits.stop_min_lr} (it is {learning_rate:g})"),
        "--stop-time-hours": (0 < limits.stop_time_hours < hours, f"{limits.stop_time_hours}"),
        "--patience": (0 < checkpoint.patience <= bad_validations, f"{checkpoint.patience}"),
    }
    return {option: f"{option} {value}" for option, (is_reached, value) in reached.items() if is_reached}


def _say_finished(cfg: Any, trainer: Any, reached: dict[str, str]) -> None:
    further = [f"{'lower' if option == '--stop-min-lr' else 'raise'} {option}" for option in reached]
    logger.info(
        f"the training run in {cfg.save_dir} is finished: after {trainer.get_num_updates()} updates it has reached "
        f"{' and '.join(reached.values())}; no update is made and no checkpoint is written; "
        f"to continue, {' and '.join(further)}"
    )


@replaces("fairseq.checkpoint_utils:load_checkpoint_to_cpu")
def load_checkpoint_to_cpu(original: Any, path: str, *args: Any, **kwargs: Any) -> Any:
    """Name files that are truncated or not checkpoints, and reject parameters that are not finite.

    torch and fairseq say ``EOFError``, ``KeyError: 101`` or "Invalid argument", without naming the file, and continue
    with outputs that are NaN.

    Raises:
        UserError: see above.

    Unnecessary with a fairseq that checks what it loads.
    """
    try:
        state = original(path, *args, **kwargs)
    except Exception as error:
        problem = _problem_of(path)
        if problem is None:
            raise
        raise UserError(f"{path} is not a fairseq checkpoint: {problem}") from error
    infinite = [name for name, value in (state.get("model") or {}).items() if not _is_finite(name, value)]
    if infinite:
        more = f" and {len(infinite) - _MOST_NAMES} more" if len(infinite) > _MOST_NAMES else ""
        raise UserError(
            f"the checkpoint {path} has parameters that are not finite: {', '.join(infinite[:_MOST_NAMES])}{more}; "
            "it is damaged, or its training diverged: use an earlier one"
        )
    return state


def _problem_of(path: str) -> str | None:
    """What is wrong with a file from which no checkpoint could be loaded, or None if it looks like one."""
    if os.path.isdir(path):
        return "it is a folder; give a file in it, such as checkpoint_best.pt"
    if not os.path.exists(path):
        return None
    with open(path, "rb") as file:
        beginning = file.read(1024)
    if not beginning:
        return "it is empty"
    if beginning.startswith(b"PK") and not zipfile.is_zipfile(path):
        return f"it is truncated after {os.path.getsize(path):,} bytes; an earlier checkpoint may be complete"
    if not beginning.startswith((b"PK", b"\x80")):
        return "it is a file of another kind"
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        return "it holds more than tensors and plain values, and loading it could run arbitrary code"
    except Exception as error:
        return f"torch cannot load it ({type(error).__name__})"
    if not isinstance(state, dict) or not {"model", "extra_state"} <= state.keys():
        return "it was saved by torch, but holds something else"
    return None


def is_uninitialised(name: str) -> bool:
    """Whether the numbers of a buffer mean nothing: fairseq keeps such buffers for their dtype, uninitialised."""
    return name.endswith("_float_tensor")


def _is_finite(name: str, value: Any) -> bool:
    return is_uninitialised(name) or not isinstance(value, Tensor) or bool(value.isfinite().all())


@replaces("fairseq.checkpoint_utils:load_model_ensemble_and_task")
def load_model_ensemble_and_task(
    original: Any, filenames: Any, arg_overrides: Any = None, *args: Any, **kwargs: Any
) -> Any:
    """Reject data of a task or direction other than the model's, and scoring options that would have no effect.

    The dictionaries of two tasks or languages may be the same, and the scores would look like scores of a bad model.
    ``fairseq-validate`` scores with the checkpoint's ``--task`` and ``--criterion``, whatever it is given.

    For every model; the check of the task and the direction only for stack models. Unnecessary with a fairseq that
    respects these options, and takes the segmentation of data from the checkpoint.
    """
    from fairseq import utils

    size = getattr(getattr(kwargs.get("task"), "args", None), "tokens_per_sample", None)
    if size is not None and size < 1:  # fairseq-eval-lm has subtracted the window
        raise UserError("--context-window: expected a number below --tokens-per-sample")
    try:
        models, cfg, task = original(filenames, arg_overrides, *args, **kwargs)
        _refuse_options_without_effect(cfg, arg_overrides or {})
    except UserError:  # a model of another task does not always fit
        if kwargs.get("task") is not None:
            for trained in _tasks_of_training(filenames):
                _refuse_another_task_than_the_stream(kwargs["task"], trained)
        raise
    if any(type(model).__module__.startswith("fairseq_stack.") for model in models):
        task.task_of_training = cfg.task  # which fairseq-eval-lm asks how to divide the data
        # The configuration is of the last model, and fairseq-validate overrides the languages.
        is_of_training = len(filenames) == 1 and not {"source_lang", "target_lang"} & (arg_overrides or {}).keys()
        for trained in [cfg.task] if is_of_training else _tasks_of_training(filenames):
            _refuse_another_task_than_the_stream(task, trained)
            _refuse_the_other_direction(task.cfg, trained)
    data = getattr(task.cfg or task.args, "data", None)  # older tasks have a Namespace
    if data and any(map(_has_companions, models)):
        for filename in filenames:
            require_same_task(Path(filename), Path(utils.split_paths(data)[0]))
    return models, cfg, task


def _tasks_of_training(filenames: Iterable[str]) -> Iterator[Any]:
    """The options of the tasks with which models were trained."""
    from fairseq import checkpoint_utils

    return (checkpoint_utils.load_checkpoint_to_cpu(filename)["cfg"].task for filename in filenames)


def _refuse_options_without_effect(cfg: Any, overrides: dict[str, Any]) -> None:
    for name in ("task", "criterion"):
        trained, wanted = getattr(cfg[name], "_name", None), overrides.get(name)
        if trained is not None and wanted not in (None, trained):
            raise UserError(
                f"--{name} {wanted} has no effect: the model is scored with the {name} of its training, expected "
                f"--{name} {trained}"
            )


def _refuse_the_other_direction(wanted: Any, trained: Any) -> None:
    """With a joint vocabulary, a model translates in the wrong direction as if nothing were the matter."""
    here, there = ([getattr(of, name, None) for name in ("source_lang", "target_lang")] for of in (wanted, trained))
    if here == there[::-1] != there:
        raise UserError(f"the model translates from {there[0]} to {there[1]}: expected -s {there[0]} -t {there[1]}")


def _refuse_another_task_than_the_stream(task: Any, trained: Any) -> None:
    """Only with the task of streams does a model read, before a sentence, the end of another."""
    if getattr(trained, "_name", None) == _STREAM and not hasattr(task, "end_of_sentence"):
        raise UserError(
            f"the model was trained on one stream: expected --task {_STREAM} here (fairseq-eval-lm cannot carry the "
            f"state of a stream: score it with fairseq-validate --task {_STREAM} --batch-size 1, and single sentences "
            "with fairseq-stack surprisal --end)"
        )
