"""``fairseq.optim.lr_scheduler.reduce_lr_on_plateau``: a schedule that resumes exactly."""

from __future__ import annotations

from typing import Any

from fairseq_stack.compat.replacing import replaces

_SCHEDULE = "fairseq.optim.lr_scheduler.reduce_lr_on_plateau:ReduceLROnPlateauLRSchedule"


@replaces(f"{_SCHEDULE}.state_dict")
def state_dict(original: Any, self: Any) -> dict[str, Any]:
    """Save the number of validations without improvement.

    Unnecessary with a fairseq that saves this number.
    """
    return {**original(self), "num_bad_epochs": self.lr_scheduler.num_bad_epochs}


@replaces(f"{_SCHEDULE}.load_state_dict")
def load_state_dict(original: Any, self: Any, state_dict: dict[str, Any]) -> None:
    """Restore the number of validations without improvement.

    Unnecessary with a fairseq that restores this number.
    """
    original(self, state_dict)
    self.lr_scheduler.num_bad_epochs = state_dict.get("num_bad_epochs", 0)
