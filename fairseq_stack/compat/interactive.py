"""``fairseq-interactive`` continues after a line that is too long for the model."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from typing import Any

logger = logging.getLogger(__name__)


def go_on_after_long_lines() -> None:
    """Let ``fairseq-interactive`` leave out lines that are too long, with a warning, and translate all others.

    fairseq ends the whole stream at such a line. With ``--skip-invalid-size-inputs-valid-test`` it leaves the line out
    without giving its number. Unnecessary with a fairseq that names the line and continues.
    """
    for name in ("fairseq_cli.interactive", "__main__"):  # the latter with python -m fairseq_cli.interactive
        module = sys.modules.get(name)
        if module is not None and hasattr(module, "buffered_read") and hasattr(module, "make_batches"):
            _LongLines().install(module)


class _LongLines:
    """Counts the lines that have been read, and reports those that were left out."""

    def __init__(self) -> None:
        self._read = 0
        self._left_out = 0

    def install(self, module: Any) -> None:
        """Replace two functions of ``fairseq_cli.interactive``, unless they have been replaced before."""
        if isinstance(getattr(module.make_batches, "__self__", None), _LongLines):
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
            logger.warning("%d of %d lines were not translated: too long", self._left_out, self._read)

    def make_batches(self, lines: list[str], cfg: Any, task: Any, max_positions: Any, encode_fn: Any) -> Iterator[Any]:
        """fairseq's function, for all lines that the model accepts."""
        cfg.dataset.skip_invalid_size_inputs_valid_test = True
        done = set()
        for batch in self._make_batches(lines, cfg, task, max_positions, encode_fn):
            done.update(batch.ids.tolist())
            yield batch
        limit = (max_positions, "--tokens-per-sample")  # of language models
        if isinstance(max_positions, tuple):
            limit = (max_positions[0], "--max-source-positions")
        for index in sorted(set(range(len(lines))) - done):
            _, lengths = task.get_interactive_tokens_and_lengths([lines[index]], encode_fn)
            number = self._read + index
            self._left_out += 1
            logger.warning(
                "line %d is not translated: it has %d tokens, and the model accepts %s (%s in training); there "
                "is no H-%d",
                number + 1,
                int(lengths[0]),
                *limit,
                number,
            )
