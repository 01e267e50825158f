"""Batches and the processes that read them."""

from __future__ import annotations

from typing import Any

import pytest
from fairseq.data.iterators import BufferedIterator
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

from fairseq_stack import compat


def test_workers_end_with_their_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """When as many batches are read as fairseq has counted, and not when garbage is collected."""
    compat.apply()
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
