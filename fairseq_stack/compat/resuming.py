"""Interrupted training resumes as if nothing had happened, and finished training stays as it is."""

from __future__ import annotations

import importlib
import logging
import math
import sys
from types import SimpleNamespace
from typing import Any

from fairseq_stack.compat.wrapping import Function, wrap_once

logger = logging.getLogger(__name__)

_EARLY_STOPPING = "early_stopping"  # in the extra state of a checkpoint


def end_finished_training() -> None:
    """Let a finished training run that is started again end without a further update.

    fairseq checks ``--max-update`` and ``--stop-time-hours`` only after it has made and saved an update: each start
    moves ``checkpoint_last.pt`` one update beyond the end. It also forgets the validations that ``--patience`` has
    counted, and continues. Unnecessary with a fairseq that also checks before the first update.
    """
    from fairseq import checkpoint_utils

    wrap_once(checkpoint_utils, "load_checkpoint", _ending_finished_training)


def _ending_finished_training(load_checkpoint: Function) -> Function:
    def load_checkpoint_or_end(cfg: Any, trainer: Any, **passthrough: Any) -> Any:
        extra_state, epoch_itr = load_checkpoint(cfg, trainer, **passthrough)
        reached = _limits_reached(trainer, epoch_itr)
        if extra_state is None or not reached:
            return extra_state, epoch_itr
        logger.info(
            f"the training run in {cfg.save_dir} is finished: after {trainer.get_num_updates()} updates it has reached "
            f"{' and '.join(reached.values())}; no update is made and no checkpoint is written; "
            f"to continue, {' and '.join(_further(option) for option in reached)}"
        )
        # fairseq trains while next_epoch_idx <= max_epoch, and max_epoch is infinite if it is not given.
        return extra_state, SimpleNamespace(next_epoch_idx=math.nan)

    return load_checkpoint_or_end


def _limits_reached(trainer: Any, epoch_itr: Any) -> dict[str, str]:
    """The options whose limits have been reached, each with its value."""
    limits, checkpoint = trainer.cfg.optimization, trainer.cfg.checkpoint
    max_update, max_epoch = limits.max_update or math.inf, limits.max_epoch or math.inf
    hours = trainer._previous_training_time / 3600  # the same on all workers
    bad_validations = getattr(_should_stop_early(), "num_runs", 0)
    learning_rate = trainer.get_lr()
    reached = {
        "--max-update": (trainer.get_num_updates() >= max_update, f"{max_update}"),
        "--max-epoch": (epoch_itr.next_epoch_idx > max_epoch, f"{max_epoch}"),
        "--stop-min-lr": (learning_rate <= limits.stop_min_lr, f"{limits.stop_min_lr} (it is {learning_rate:g})"),
        "--stop-time-hours": (0 < limits.stop_time_hours < hours, f"{limits.stop_time_hours}"),
        "--patience": (0 < checkpoint.patience <= bad_validations, f"{checkpoint.patience}"),
    }
    return {option: f"{option} {value}" for option, (is_reached, value) in reached.items() if is_reached}


def _further(option: str) -> str:
    return f"{'lower' if option == '--stop-min-lr' else 'raise'} {option}"


def resume_what_fairseq_forgets() -> None:
    """Keep the count of ``--patience`` and the state of ``--lr-scheduler reduce_lr_on_plateau`` across a restart.

    Both count validations without improvement, and fairseq saves neither count. It also saves the checkpoint of an
    epoch before the scheduler sees the epoch's validation loss, so the scheduler of a resumed run never sees that loss.
    Unnecessary with a fairseq that saves both counts, and makes the scheduler's step at the end of an epoch before it
    saves.
    """
    from fairseq.optim.lr_scheduler.reduce_lr_on_plateau import ReduceLROnPlateauLRSchedule
    from fairseq.trainer import Trainer

    wrap_once(Trainer, "save_checkpoint", _saving_patience)
    wrap_once(Trainer, "load_checkpoint", _loading_what_fairseq_forgets)
    wrap_once(ReduceLROnPlateauLRSchedule, "state_dict", _with_bad_epochs)
    wrap_once(ReduceLROnPlateauLRSchedule, "load_state_dict", _loading_bad_epochs)


def count_validations_that_are_due() -> None:
    """Let ``--patience`` and ``--lr-scheduler validation_plateau`` ignore a validation that only the end brings.

    When ``--max-update`` or ``--stop-time-hours`` ends training, fairseq validates once more. Training that continues
    from there, with a raised limit, would have counted one validation more than uninterrupted training. Unnecessary
    with a fairseq that does not count it.
    """
    from fairseq.trainer import Trainer

    wrap_once(Trainer, "__init__", _watching_validations)


def validation_is_due() -> bool:
    """Whether the present validation would come if training did not end here."""
    return bool(getattr(_should_stop_early(), "is_due", True))


def _watching_validations(init: Function) -> Function:
    def init_and_watch(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        wrap_once(train_command(), "validate_and_save", _noting_whether_due)
        wrap_once(train_command(), "should_stop_early", _counting_if_due)

    return init_and_watch


def _noting_whether_due(validate_and_save: Function) -> Function:
    def validate_and_save_noting(
        cfg: Any, trainer: Any, task: Any, epoch_itr: Any, valid_subsets: list[str], end_of_epoch: bool
    ) -> Any:
        _should_stop_early().is_due = _is_due(cfg, trainer.get_num_updates(), epoch_itr.epoch, end_of_epoch)
        return validate_and_save(cfg, trainer, task, epoch_itr, valid_subsets, end_of_epoch)

    return validate_and_save_noting


def _is_due(cfg: Any, num_updates: int, epoch: int, end_of_epoch: bool) -> bool:
    """Whether fairseq validates after this update: at the end of an epoch, or after so many updates."""
    if end_of_epoch and epoch % cfg.dataset.validate_interval == 0:
        return True
    intervals = [cfg.dataset.validate_interval_updates]
    if not end_of_epoch:  # fairseq validates before it saves within an epoch
        intervals.append(cfg.checkpoint.save_interval_updates)
    return any(interval > 0 and num_updates % interval == 0 for interval in intervals)


def _counting_if_due(should_stop_early: Function) -> Function:
    def should_stop_if_due(cfg: Any, valid_loss: float | None) -> bool:
        return bool(should_stop_early(cfg, valid_loss if validation_is_due() else None))

    return should_stop_if_due


def train_command() -> Any:
    """The module of ``fairseq-train`` that runs: ``__main__`` with ``python -m fairseq_cli.train``."""
    running = sys.modules["__main__"]
    return running if hasattr(running, "should_stop_early") else importlib.import_module("fairseq_cli.train")


def _should_stop_early() -> Any:
    """The function that counts for ``--patience``, in its attributes."""
    return train_command().should_stop_early


def _saving_patience(save_checkpoint: Function) -> Function:
    def save_checkpoint_with_patience(self: Any, filename: str, extra_state: dict[str, Any]) -> Any:
        counted = vars(_should_stop_early())
        kept = {name: counted[name] for name in ("best", "num_runs") if name in counted}
        return save_checkpoint(self, filename, {**extra_state, _EARLY_STOPPING: kept})

    return save_checkpoint_with_patience


def _loading_what_fairseq_forgets(load_checkpoint: Function) -> Function:
    def load_checkpoint_completely(
        self: Any,
        filename: str,
        reset_optimizer: bool = False,
        reset_lr_scheduler: bool = False,
        optimizer_overrides: dict[str, Any] | None = None,
        reset_meters: bool = False,
    ) -> Any:
        extra_state = load_checkpoint(
            self, filename, reset_optimizer, reset_lr_scheduler, optimizer_overrides, reset_meters=reset_meters
        )
        if reset_optimizer:  # another training run, which has taken no time so far
            self._previous_training_time = 0
        if extra_state is None or reset_optimizer:
            return extra_state
        if not reset_meters:  # the count belongs to the best loss so far, as in fairseq
            vars(_should_stop_early()).update(extra_state.get(_EARLY_STOPPING, {}))
        place = extra_state["train_iterator"]
        if not reset_lr_scheduler and place["epoch"] > 1 and place.get("iterations_in_epoch") == 0:
            self.lr_step(place["epoch"] - 1, extra_state.get("val_loss"))
        return extra_state

    return load_checkpoint_completely


def _with_bad_epochs(state_dict: Function) -> Function:
    def state_dict_with_bad_epochs(self: Any) -> dict[str, Any]:
        return {**state_dict(self), "num_bad_epochs": self.lr_scheduler.num_bad_epochs}

    return state_dict_with_bad_epochs


def _loading_bad_epochs(load_state_dict: Function) -> Function:
    def load_state_dict_with_bad_epochs(self: Any, state_dict: dict[str, Any]) -> None:
        load_state_dict(self, state_dict)
        self.lr_scheduler.num_bad_epochs = state_dict.get("num_bad_epochs", 0)

    return load_state_dict_with_bad_epochs
