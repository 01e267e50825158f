"""``fairseq-interactive`` continues after a line that the model cannot read."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

from fairseq_stack.errors import UserError

logger = logging.getLogger(__name__)


def go_on_after_unusable_lines() -> None:
    """Let ``fairseq-interactive`` leave out lines that are too long or that the task refuses, and translate all others.

    fairseq ends the whole stream at such a line. With ``--skip-invalid-size-inputs-valid-test`` it leaves out lines
    that are too long, without giving their numbers. Unnecessary with a fairseq that names the line and continues.
    """
    for name in ("fairseq_cli.interactive", "__main__"):  # the latter with python -m fairseq_cli.interactive
        module = sys.modules.get(name)
        if module is not None and hasattr(module, "buffered_read") and hasattr(module, "make_batches"):
            _Lines().install(module)


class _Lines:
    """Counts the lines that have been read, and reports those that were left out."""

    def __init__(self) -> None:
        self._read = 0
        self._left_out = 0

    def install(self, module: Any) -> None:
        """Replace two functions of ``fairseq_cli.interactive``, unless they have been replaced before."""
        if isinstance(getattr(module.make_batches, "__self__", None), _Lines):
            return
        self._buffered_read: Callable[..., Iterator[list[str]]] = module.buffered_read
        self._make_batches: Callable[..., Iterator[Any]] = module.make_batches
        module.buffered_read = self.buffered_read
        module.make_batches = self.make_batches

    def buffered_read(self, input: str, buffer_size: int) -> Iterator[list[str]]:
        """fairseq's function, which also counts the lines here."""
        self._read = self._left_out = 0
        for lines in self._buffered_read(input, buffer_size):
            yield lines
            self._read += len(lines)
        if self._left_out:
            logger.warning("%d of %d lines were not translated", self._left_out, self._read)

    def make_batches(self, lines: list[str], cfg: Any, task: Any, max_positions: Any, encode_fn: Any) -> Iterator[Any]:
        """fairseq's function, for all lines that the task and the model accept."""
        cfg.dataset.skip_invalid_size_inputs_valid_test = True
        numbers = [number for number, line in enumerate(lines) if self._is_accepted(number, line, task, encode_fn)]
        accepted = [lines[number] for number in numbers]
        done = set()
        for batch in self._make_batches(accepted, cfg, task, max_positions, encode_fn) if accepted else ():
            done.update(batch.ids.tolist())
            yield batch._replace(ids=torch.tensor(numbers)[batch.ids])
        limit = (max_positions, "--tokens-per-sample")  # of language models
        if isinstance(max_positions, tuple):
            limit = (max_positions[0], "--max-source-positions")
        for index in sorted(set(range(len(accepted))) - done):
            _, lengths = task.get_interactive_tokens_and_lengths([accepted[index]], encode_fn)
            reason = f"it has {int(lengths[0])} tokens, and the model accepts {limit[0]} ({limit[1]} in training)"
            self._leave_out(numbers[index], reason)

    def _is_accepted(self, number: int, line: str, task: Any, encode_fn: Any) -> bool:
        """Whether the task accepts a line; otherwise it is left out."""
        try:
            task.build_dataset_for_inference(*task.get_interactive_tokens_and_lengths([line], encode_fn))
        except UserError as error:
            self._leave_out(number, str(error).removeprefix("input, string 1: "))
            return False
        return True

    def _leave_out(self, number: int, reason: str) -> None:
        number += self._read
        self._left_out += 1
        logger.warning("line %d is not translated: %s; there is no H-%d", number + 1, reason, number)
