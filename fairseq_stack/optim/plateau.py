"""``--lr-scheduler validation_plateau``: lower the learning rate when validations stop improving."""

from __future__ import annotations

from fairseq.optim.lr_scheduler import register_lr_scheduler
from fairseq.optim.lr_scheduler.reduce_lr_on_plateau import (
    ReduceLROnPlateauLRSchedule,
    ReduceLROnPlateauLRScheduleConfig,
)


@register_lr_scheduler("validation_plateau", dataclass=ReduceLROnPlateauLRScheduleConfig)
class ValidationPlateau(ReduceLROnPlateauLRSchedule):
    """fairseq's ``reduce_lr_on_plateau``, which counts every validation and not only those at the end of an epoch.

    The learning rate is multiplied by ``--lr-shrink`` after ``--lr-patience`` + 1 validations in a row without an
    improvement of ``--best-checkpoint-metric``. A validation counts before its checkpoint is saved, so resumed training
    counts the same validations. A validation that comes only because ``--max-update`` or ``--stop-time-hours`` ends
    training does not count.
    """

    def count_validation(self, val_loss: float) -> None:
        """Count a validation, which may lower the learning rate. During warm-up nothing counts.

        ``fairseq-train`` calls it (:mod:`fairseq_stack.compat.fairseq_cli_train`).
        """
        if self.warmup_end:
            self.lr_scheduler.step(val_loss)

    def step(self, epoch: int, val_loss: float | None = None) -> float:
        """The end of an epoch changes nothing: :meth:`count_validation` has seen its validation."""
        return float(self.optimizer.get_lr())
