"""Batches: no sentence is lost, and a resumed run sees the same batches as an uninterrupted run."""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from fairseq_stack.compat.options import set_dataclass_default
from fairseq_stack.compat.wrapping import Function, wrap_once
from fairseq_stack.errors import UserError


def keep_last_batches() -> None:
    """Stop ``--required-batch-size-multiple`` from dropping sentences.

    fairseq 0.12.3 silently drops the last batch of a data set when the batch size is not a multiple of this
    option. The default is 8: of 37 sentences ``fairseq-generate`` translates 32. Training and validation lose
    sentences, too. Two changes fix this:

    - The default becomes 1, so that ``--batch-size 12`` does not mean 8; a value that is given is respected.
    - The last batch is kept, whatever the value, as it was up to fairseq 0.12.2. ``fairseq-hydra-train``
      needs this: it reads its defaults before it imports plugins.

    Unnecessary with a fairseq that keeps the last batch and has 1 for the default.
    """
    from fairseq.data import data_utils
    from fairseq.dataclass.configs import DatasetConfig

    set_dataclass_default(DatasetConfig, "required_batch_size_multiple", 1)
    wrap_once(data_utils, "batch_by_size", _keeping_last_batch)


def _keeping_last_batch(
    batch_by_size: Callable[..., list[np.ndarray]],
) -> Callable[..., list[np.ndarray]]:
    """``batch_by_size`` of ``fairseq.data.data_utils`` without the loss of the last batch.

    The function raises UserError if a sentence does not fit into a batch of ``--max-tokens``.
    """

    def batch_by_size_keeping_last(
        indices: Iterable[int], num_tokens_fn: Callable[[int], int], *args: Any, **kwargs: Any
    ) -> list[np.ndarray]:
        if not isinstance(indices, np.ndarray):
            indices = np.fromiter(indices, dtype=np.int64)
        if len(indices) == 0:  # fairseq's function fails when there is no last batch
            return []
        try:
            batches = batch_by_size(indices, num_tokens_fn, *args, **kwargs)
        except AssertionError as error:
            if "max_tokens=" not in str(error):
                raise
            longest = max(int(num_tokens_fn(index)) for index in indices)
            raise UserError(
                f"--max-tokens (for validation, --max-tokens-valid): expected at least {longest}, the number of tokens "
                f"of the longest sentence, got {kwargs.get('max_tokens')}"
            ) from error
        num_batched = sum(len(batch) for batch in batches)
        return batches if num_batched == len(indices) else [*batches, indices[num_batched:]]

    return batch_by_size_keeping_last


def refuse_empty_data() -> None:
    """Name an empty data set, instead of failing with "cannot mmap an empty file".

    Unnecessary with a fairseq that says which file is empty.
    """
    from fairseq.data import data_utils

    wrap_once(data_utils, "load_indexed_dataset", _refusing_empty)


def _refusing_empty(load_indexed_dataset: Function) -> Function:
    def load_nonempty_dataset(path: str, *args: Any, **kwargs: Any) -> Any:
        for file in (f"{path}.bin", path):  # binarised, or text of --dataset-impl raw
            if os.path.isfile(file) and os.path.getsize(file) == 0:
                raise UserError(
                    f"the data set {file} is empty: expected at least one sentence; the text given to "
                    "fairseq-preprocess had none"
                )
        return load_indexed_dataset(path, *args, **kwargs)

    return load_nonempty_dataset


def refuse_reserved_words() -> None:
    """Refuse text that a model is to read if one of its words is ``<s>`` or ``<pad>``.

    fairseq makes them its own symbols: a ``<pad>`` is hidden from the model, or left out of a score. Unnecessary with a
    fairseq whose symbols cannot be written in a text.
    """
    from fairseq.data import Dictionary

    wrap_once(Dictionary, "encode_line", _refusing_reserved)


_RESERVED = ("<s>", "<pad>")


def _refusing_reserved(encode_line: Function) -> Function:
    def encode_line_without_reserved(self: Any, line: str, *args: Any, **kwargs: Any) -> Any:
        if not kwargs.get("add_if_not_exist", True):  # a text for a given dictionary
            for word in line.split():
                if word in _RESERVED:
                    raise UserError(f"{line!r}: fairseq reserves the symbol {word}; it cannot be a word of a text")
        return encode_line(self, line, *args, **kwargs)

    return encode_line_without_reserved


def make_batches_anew_in_each_epoch() -> None:
    """Let resumed training see the batches that uninterrupted training sees.

    fairseq groups sentences into batches with a seed that depends on the epoch, but only once, in the first epoch of a
    run. After resuming, the first epoch is a different one: sentences of equal length are grouped differently, and the
    parameters differ from the parameters of an uninterrupted run. This shim has the same effect as always giving
    ``--update-epoch-batch-itr True``.
    Unnecessary with a fairseq where the groups do not depend on where a run began.
    """
    from fairseq.tasks import FairseqTask

    FairseqTask.can_reuse_epoch_itr = _cannot_reuse_epoch_itr


def _cannot_reuse_epoch_itr(self: Any, dataset: Any) -> bool:
    return False


def end_workers_with_their_epoch() -> None:
    """Let the worker processes of an epoch end when its last batch has been read.

    fairseq counts the batches and never asks for one too many, so torch does not notice the end. The workers live on
    until the garbage collector finds their loader, and it may then wait five seconds for each: the collector has
    already closed the queue that would tell them to end.
    Unnecessary with a fairseq that exhausts its loaders.
    """
    from fairseq.data.iterators import BackgroundConsumer

    wrap_once(BackgroundConsumer, "__init__", _ending_workers)


def _ending_workers(init: Function) -> Function:
    def init_ending_workers(self: Any, queue: Any, source: Iterable[Any], *args: Any, **kwargs: Any) -> None:
        init(self, queue, _EndingWorkers(source), *args, **kwargs)

    return init_ending_workers


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


def end_readers_with_the_process() -> None:
    """Let the threads that read batches ahead end before Python does.

    fairseq does not wait for them. A thread that frees a tensor while Python is ending aborts the process, which exits
    with 134 and "terminate called without an active exception" although all its work is done. Unnecessary with a
    fairseq that joins its threads, and with Python 3.14, where such threads are left to hang.
    """
    from fairseq.data.iterators import BackgroundConsumer

    wrap_once(BackgroundConsumer, "start", _noting_readers)
    atexit.register(_end_readers)


_readers: weakref.WeakSet[Any] = weakref.WeakSet()


def _noting_readers(start: Function) -> Function:
    def start_noted(self: Any) -> None:
        _readers.add(self)
        start(self)

    return start_noted


def _end_readers() -> None:
    for reader in list(_readers):
        reader._max_len = 0  # the batch that is being read is the last
        while reader.is_alive():
            with contextlib.suppress(queue.Empty):
                reader._queue.get(timeout=0.01)  # it may be waiting for room in its queue
