"""``fairseq.data.iterators``: what reads batches ahead ends with its epoch, or with the process."""

from __future__ import annotations

import atexit
import contextlib
import queue
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

from fairseq_stack.compat.replacing import replaces

_readers: weakref.WeakSet[Any] = weakref.WeakSet()


@replaces("fairseq.data.iterators:BackgroundConsumer.__init__")
def init(original: Any, self: Any, queue: Any, source: Iterable[Any], *args: Any, **kwargs: Any) -> None:
    """End worker processes after the last batch of an epoch, and reading threads before Python exits.

    fairseq counts the batches and never asks for one too many, so torch does not notice the end. The workers live on
    until the garbage collector finds their loader, and it may then wait five seconds for each: the collector has
    already closed the queue that would tell them to end.

    fairseq does not wait for its threads. A thread that frees a tensor while Python is ending aborts the process, which
    exits with 134 and "terminate called without an active exception" although all its work is done.

    Unnecessary with a fairseq that exhausts its loaders and joins its threads.
    """
    original(self, queue, _EndingWorkers(source), *args, **kwargs)
    if not _readers:
        atexit.register(_end_readers)
    _readers.add(self)


class _EndingWorkers:
    """A data loader whose workers end with the loop that reads it, even if the loop stops early."""

    def __init__(self, source: Iterable[Any]) -> None:
        self._source = source

    def __iter__(self) -> Iterator[Any]:
        iterator = iter(self._source)
        try:
            yield from iterator
        finally:
            if hasattr(iterator, "_shutdown_workers"):  # the loader has workers
                iterator._shutdown_workers()


def _end_readers() -> None:
    for reader in list(_readers):
        reader._max_len = 0  # the batch that is being read is the last
        while reader.is_alive():
            with contextlib.suppress(queue.Empty):
                reader._queue.get(timeout=0.01)  # it may be waiting for room in its queue
