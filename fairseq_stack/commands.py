"""What fairseq's commands lack: errors that say what is wrong, and an exact continuation of interrupted training.

:func:`apply` is called by :mod:`fairseq_stack.models`. Like :mod:`fairseq_stack.compat`, this changes no file of
fairseq, and every function says what makes it unnecessary.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

_UNKNOWN_REASON = "Cannot load model parameters from checkpoint"


def apply() -> None:
    """Install everything in this process. Calling it again changes nothing."""
    say_why_a_checkpoint_does_not_fit()
    refuse_empty_data()
    make_batches_anew_in_each_epoch()


def say_why_a_checkpoint_does_not_fit() -> None:
    """Let ``fairseq-train`` end with the reason why it cannot continue from a checkpoint.

    fairseq replaces whatever the model says by "please ensure that the architectures match", which sends people who
    have changed a dictionary the wrong way. Unnecessary with a fairseq that passes the model's error on.
    """
    from fairseq.trainer import Trainer

    if not hasattr(Trainer.load_checkpoint, "__wrapped__"):
        Trainer.load_checkpoint = _saying_why(Trainer.load_checkpoint)


def _saying_why(load_checkpoint: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(load_checkpoint)
    def load_checkpoint_saying_why(self: Any, filename: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return load_checkpoint(self, filename, *args, **kwargs)
        except Exception as error:
            reason = error.__context__
            if reason is None or not str(error).startswith(_UNKNOWN_REASON):
                raise
            raise ValueError(f"cannot continue from {filename}: {reason}") from reason

    return load_checkpoint_saying_why


def refuse_empty_data() -> None:
    """Name the empty data set, instead of "cannot mmap an empty file".

    Unnecessary with a fairseq that says which file is empty.
    """
    from fairseq.data import data_utils

    if not hasattr(data_utils.load_indexed_dataset, "__wrapped__"):
        data_utils.load_indexed_dataset = _refusing_empty(data_utils.load_indexed_dataset)


def _refusing_empty(load_indexed_dataset: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(load_indexed_dataset)
    def load_nonempty_dataset(path: str, *args: Any, **kwargs: Any) -> Any:
        for file in (f"{path}.bin", path):  # binarised, or text of --dataset-impl raw
            if os.path.isfile(file) and os.path.getsize(file) == 0:
                raise ValueError(
                    f"the data set {file} is empty: expected at least one sentence; the text that "
                    "fairseq-preprocess made it from had none"
                )
        return load_indexed_dataset(path, *args, **kwargs)

    return load_nonempty_dataset


def make_batches_anew_in_each_epoch() -> None:
    """Let resumed training see the batches that uninterrupted training sees.

    fairseq groups sentences into batches by a seed that depends on the epoch, but only once, in the first epoch of a
    run, which is another one after resuming: then equally long sentences are grouped differently, and the parameters
    are not those of an uninterrupted run. It is as if ``--update-epoch-batch-itr True`` were always given.
    Unnecessary with a fairseq where the groups do not depend on where a run began.
    """
    from fairseq.tasks import FairseqTask

    FairseqTask.can_reuse_epoch_itr = _cannot_reuse_epoch_itr


def _cannot_reuse_epoch_itr(self: Any, dataset: Any) -> bool:
    return False
