"""Optimizers and learning-rate schedules that fairseq lacks. Importing this package registers them.

``--optimizer torch_adam`` is PyTorch's Adam, with the weight decay in the gradient; ``--lr-scheduler
validation_plateau`` lowers the learning rate when validations stop improving, wherever in an epoch they are. Both are
as in the papers' experiments. Each is one file; a new one is imported here.

This package imports :mod:`fairseq_stack.compat`, which must change fairseq before anything is registered, and which
tells a schedule of each validation (``validate`` in ``compat/fairseq_cli_train.py``), and the name of the parameters of
stacks from :mod:`fairseq_stack.modules`.
"""

from fairseq_stack import compat

compat.apply()

from fairseq_stack.optim.plateau import ValidationPlateau  # noqa: E402
from fairseq_stack.optim.torch_adam import TorchAdam  # noqa: E402

__all__ = ["TorchAdam", "ValidationPlateau"]
