"""``fairseq_cli.interactive``: a line that the model cannot read is left out, and the others are translated."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import torch

from fairseq_stack.compat.replacing import replaces
from fairseq_stack.errors import UserError

logger = logging.getLogger(__name__)


class _Lines:
    """Counts the lines that have been read before the present buffer, and those that were left out."""

    read = 0
    left_out = 0

    def leave_out(self, number: int, reason: str) -> None:
        """Report a line of the present buffer."""
        number += self.read
        self.left_out += 1
        logger.warning("line %d is not translated: %s; there is no H-%d", number + 1, reason, number)


_lines = _Lines()


@replaces("fairseq_cli.interactive:buffered_read")
def buffered_read(original: Any, input: str, buffer_size: int) -> Iterator[list[str]]:
    """Count the lines, and report at the end how many were left out.

    Unnecessary with a fairseq whose ``fairseq-interactive`` names a line that it cannot translate, and continues.
    """
    _lines.read = _lines.left_out = 0
    for lines in original(input, buffer_size):
        yield lines
        _lines.read += len(lines)
    if _lines.left_out:
        logger.warning("%d of %d lines were not translated", _lines.left_out, _lines.read)


@replaces("fairseq_cli.interactive:make_batches")
def make_batches(
    original: Any, lines: list[str], cfg: Any, task: Any, max_positions: Any, encode_fn: Any
) -> Iterator[Any]:
    """Leave out lines that are too long or that the task rejects; in fairseq, they end the whole stream.

    With ``--skip-invalid-size-inputs-valid-test`` fairseq leaves out lines that are too long, without their numbers.

    Unnecessary with a fairseq that names the line and continues.
    """
    cfg.dataset.skip_invalid_size_inputs_valid_test = True
    numbers = [number for number, line in enumerate(lines) if _is_accepted(number, line, task, encode_fn)]
    accepted = [lines[number] for number in numbers]
    done = set()
    for batch in original(accepted, cfg, task, max_positions, encode_fn) if accepted else ():
        done.update(batch.ids.tolist())
        yield batch._replace(ids=torch.tensor(numbers)[batch.ids])
    limit = (max_positions, "--tokens-per-sample")  # of language models
    if isinstance(max_positions, tuple):
        limit = (max_positions[0], "--max-source-positions")
    for index in sorted(set(range(len(accepted))) - done):
        _, lengths = task.get_interactive_tokens_and_lengths([accepted[index]], encode_fn)
        reason = f"it has {int(lengths[0])} tokens, and the model accepts {limit[0]} ({limit[1]} in training)"
        _lines.leave_out(numbers[index], reason)


def _is_accepted(number: int, line: str, task: Any, encode_fn: Any) -> bool:
    """Whether the task accepts a line; otherwise it is left out."""
    try:
        task.build_dataset_for_inference(*task.get_interactive_tokens_and_lengths([line], encode_fn))
    except UserError as error:
        _lines.leave_out(number, str(error).removeprefix("input, string 1: "))
        return False
    return True
