"""``fairseq_cli.train``: validations that are due, after any number of sentences, and compared by all digits."""

from __future__ import annotations

import contextlib
import copy
import importlib
import sys
from collections.abc import Iterator
from typing import Any

from fairseq_stack.compat.configs import EXACT
from fairseq_stack.compat.replacing import is_running_as_main, replaces
from fairseq_stack.errors import UserError

_COMMAND = "fairseq_cli.train"
_ALL_DIGITS = 400  # more than a float has: round() changes nothing


def early_stopping() -> dict[str, Any]:
    """What ``--patience`` has counted (``best`` and ``num_runs``): attributes of a function of ``fairseq-train``."""
    running = sys.modules["__main__"] if is_running_as_main(_COMMAND) else importlib.import_module(_COMMAND)
    return vars(running.should_stop_early)


@replaces(f"{_COMMAND}:validate_and_save")
def validate_and_save(
    original: Any, cfg: Any, trainer: Any, task: Any, epoch_itr: Any, valid_subsets: list[str], end_of_epoch: bool
) -> Any:
    """Validate and save after ``--validate-interval-sentences``; record whether a validation is due only to the end of
    training.

    Unnecessary with a fairseq that has such an option, and does not count a validation at the end of training.
    """
    if trainer.has_passed_interval:
        trainer.has_passed_interval = False
        cfg = copy.deepcopy(cfg)
        cfg.dataset.validate_interval_updates = 1
        cfg.checkpoint.save_interval_updates = 1
    early_stopping()["is_due"] = _is_due(cfg, trainer.get_num_updates(), epoch_itr.epoch, end_of_epoch)
    return original(cfg, trainer, task, epoch_itr, valid_subsets, end_of_epoch)


def _is_due(cfg: Any, num_updates: int, epoch: int, end_of_epoch: bool) -> bool:
    """Whether fairseq validates after this update: at the end of an epoch, or after so many updates."""
    if end_of_epoch and epoch % cfg.dataset.validate_interval == 0:
        return True
    intervals = [cfg.dataset.validate_interval_updates]
    if not end_of_epoch:  # fairseq validates before it saves within an epoch
        intervals.append(cfg.checkpoint.save_interval_updates)
    return any(interval > 0 and num_updates % interval == 0 for interval in intervals)


def _validation_is_due() -> bool:
    """Whether the present validation would come if training did not end here."""
    return bool(early_stopping().get("is_due", True))


@replaces(f"{_COMMAND}:should_stop_early")
def should_stop_early(original: Any, cfg: Any, valid_loss: float | None) -> bool:
    """Do not count a validation for ``--patience`` that takes place only because ``--max-update`` ends training.

    Training that continues from there, with a raised limit, would have counted one validation more than uninterrupted
    training.

    Unnecessary with a fairseq that does not count it.
    """
    return bool(original(cfg, valid_loss if _validation_is_due() else None))


@replaces(f"{_COMMAND}:validate")
def validate(original: Any, cfg: Any, trainer: Any, *args: Any, **kwargs: Any) -> Any:
    """Compare validations by all digits with ``--exact-best-checkpoint-metric``; notify schedules that count them.

    fairseq compares the three decimals that it logs. A schedule such as ``validation_plateau`` hears of a validation
    before its checkpoint is saved, and so counts the same validations after resuming.

    Unnecessary with a fairseq that has such an option, and steps the scheduler before it saves.
    """
    exact = cfg.checkpoint.get(EXACT, False)
    with _all_digits(cfg.checkpoint.best_checkpoint_metric) if exact else contextlib.nullcontext():
        losses = original(cfg, trainer, *args, **kwargs)
    count_validation = getattr(trainer.lr_scheduler, "count_validation", None)
    if count_validation is not None and _validation_is_due():
        count_validation(losses[0])
    return losses


@contextlib.contextmanager
def _all_digits(metric: str) -> Iterator[None]:
    """Log an average with all its digits within the block.

    Raises:
        UserError: it is not an average of numbers that are logged.
    """
    from fairseq.logging import metrics

    log_scalar = metrics.log_scalar
    logged = set()

    def log_scalar_exactly(key: str, value: Any, weight: Any = 1, priority: int = 10, round: int | None = None) -> None:
        logged.add(key)
        log_scalar(key, value, weight, priority, _ALL_DIGITS if key == metric else round)

    metrics.log_scalar = log_scalar_exactly
    try:
        yield
    finally:
        metrics.log_scalar = log_scalar
    if metric not in logged:
        raise UserError(
            f"--exact-best-checkpoint-metric: {metric}, the --best-checkpoint-metric, is rounded when it is computed; "
            f"expected an average, such as {' or '.join(sorted(logged & {'loss', 'nll_loss'}))}; leave the option out"
        )
