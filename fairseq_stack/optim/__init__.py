"""Optimizers and learning-rate schedules that fairseq lacks. Importing this package registers them."""

from fairseq_stack import compat

compat.apply()

from fairseq_stack.optim.plateau import ValidationPlateau, ValidationPlateauConfig  # noqa: E402
from fairseq_stack.optim.torch_adam import TorchAdam, TorchAdamConfig  # noqa: E402

__all__ = ["TorchAdam", "TorchAdamConfig", "ValidationPlateau", "ValidationPlateauConfig"]
