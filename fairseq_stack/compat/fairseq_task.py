"""``fairseq.tasks.fairseq_task``: batches that do not depend on where a run began, and counts of what is left out."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from fairseq_stack.compat.left_out import left_out
from fairseq_stack.compat.replacing import replaces
from fairseq_stack.errors import UserError

logger = logging.getLogger(__name__)
_MOST_NUMBERS = 5


@replaces("fairseq.tasks.fairseq_task:FairseqTask.can_reuse_epoch_itr")
def can_reuse_epoch_itr(original: Any, self: Any, dataset: Any) -> bool:
    """Regroup sentences into batches in each epoch, as with ``--update-epoch-batch-itr True``.

    fairseq groups them with a seed that depends on the epoch, but only once, in the first epoch of a run. After
    resuming, the first epoch is a different one: sentences of equal length are grouped differently, and the parameters
    differ from the parameters of an uninterrupted run.

    Unnecessary with a fairseq whose groups do not depend on where a run began.
    """
    return False


@replaces("fairseq.tasks.fairseq_task:FairseqTask.filter_indices_by_size")
def filter_indices_by_size(
    original: Any,
    self: Any,
    indices: np.ndarray,
    dataset: Any,
    max_positions: Any = None,
    ignore_invalid_inputs: bool = False,
) -> np.ndarray:
    """Report how many samples are left out as too long, also in the line with a score.

    ``fairseq-eval-lm`` always leaves out sentences that are too long for the model; the other commands do so with
    ``--skip-invalid-size-inputs-valid-test``. fairseq warns about them once, far from the score, and gives a
    perplexity of 1 if no sentence is left.

    Raises:
        UserError: samples are too long and must not be left out, or nothing is left of a data set.

    Unnecessary with a fairseq that counts them.
    """
    kept, ignored = dataset.filter_indices_by_size(indices, max_positions)
    left_out.num_samples, left_out.text = len(ignored), ""
    if len(ignored) == 0:
        return kept
    split = _split_of(self, dataset)
    where = f" of {split}" if split else ""
    number = f"{len(ignored):,} of {len(indices):,} {_samples(self)}{where}"
    if not ignore_invalid_inputs:
        size = _plain(dataset.size(ignored[0]))
        raise UserError(
            f"too long for the model: {number}; number {ignored[0]} has {size} tokens, expected at most "
            f"{max_positions}; split longer samples, or add --skip-invalid-size-inputs-valid-test to leave them out"
        )
    left_out.text = f"left out {number} (more than {max_positions} tokens)"
    if split and len(kept) == 0:
        limits = "--max-source-positions, --max-target-positions, --tokens-per-sample"
        raise UserError(f"no data: {left_out.text}; the model needs larger maxima when it is trained ({limits})")
    numbers = ", ".join(map(str, ignored[:_MOST_NUMBERS]))  # in a buffer, if fairseq-interactive reads sentences
    logger.warning(f"{left_out.text}; the first are numbers {numbers}")
    return kept


def _plain(size: Any) -> Any:
    return tuple(map(int, size)) if isinstance(size, tuple) else int(size)


def _split_of(task: Any, dataset: Any) -> str:
    """The name of the split that a data set holds, or an empty string if it is not a split."""
    inner = getattr(dataset, "dataset", None)  # --context-window wraps the split
    return next((name for name, split in task.datasets.items() if split is dataset or split is inner), "")


def _samples(task: Any) -> str:
    mode = str(getattr(getattr(task, "args", None), "sample_break_mode", "eos"))
    return "sentences" if mode == "eos" else "blocks"


@replaces("fairseq.tasks.fairseq_task:FairseqTask.reduce_metrics")
def reduce_metrics(original: Any, self: Any, logging_outputs: list[dict[str, Any]], criterion: Any) -> None:
    """Log the number of samples that a validation leaves out as ``left_out``.

    Unnecessary with a fairseq that counts them.
    """
    from fairseq.logging import metrics

    original(self, logging_outputs, criterion)
    if left_out.num_samples and not criterion.training:
        metrics.log_scalar("left_out", left_out.num_samples, round=0)
