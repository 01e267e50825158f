"""The processes and threads that read batches end with their epoch, or with the process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fairseq.data.iterators import BufferedIterator
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

from tests.commands.running import Server

pytestmark = pytest.mark.usefixtures("shims")


def test_workers_end_with_their_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """When as many batches are read as fairseq has counted, and not when garbage is collected."""
    iterators: list[Any] = []
    init = _MultiProcessingDataLoaderIter.__init__

    def noted_init(self: Any, loader: Any) -> None:
        iterators.append(self)
        init(self, loader)

    monkeypatch.setattr(_MultiProcessingDataLoaderIter, "__init__", noted_init)
    buffered = BufferedIterator(2, DataLoader(range(6), batch_size=2, num_workers=1))  # type: ignore[arg-type]
    assert [batch.tolist() for batch in buffered] == [[0, 1], [2, 3], [4, 5]]
    buffered._consumer.join()
    (iterator,) = iterators
    assert iterator._shutdown
    assert not any(worker.is_alive() for worker in iterator._workers)


READING_AHEAD = """
import sys
import torch
from fairseq.data.iterators import BufferedIterator
from fairseq_stack import compat

class Batches:
    def __len__(self):
        return 1000

    def __iter__(self):
        for _ in range(1000):
            for _ in range(200):
                torch.ones(1000)
            yield torch.ones(10)

compat.apply()
batches = BufferedIterator(int(sys.argv[1]), Batches())
next(batches)
"""


@pytest.mark.parametrize("size", [1, 2000])
def test_process_ends_while_batches_are_read_ahead(size: int, server: Server, tmp_path: Path) -> None:
    """Without the shim, a reader that frees tensors aborts the process (2,000); a waiting reader does not (1)."""
    ending = server.run_program(READING_AHEAD, tmp_path, str(size))
    assert (ending.code, ending.errors) == (0, "")
