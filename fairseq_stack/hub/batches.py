"""How long sentences are, and may be, and batches of similar lengths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import Tensor

from fairseq_stack.errors import UserError


def require_lengths(sentences: Sequence[Tensor], limit: int) -> None:
    """Raise UserError if a sentence has more than ``limit`` tokens."""
    for number, length in enumerate(map(len, sentences), start=1):
        if length > limit:
            raise UserError(f"sentence {number} has {length:,} tokens; the model accepts at most {limit:,}")


def batches_of_lengths(
    lengths: Sequence[int], batch_size: int | None, max_tokens: int | None, *, same_length: bool = False
) -> Iterator[list[int]]:
    """Yield the positions of strings of similar lengths, shortest first.

    Args:
        lengths: of the strings, in tokens.
        batch_size: the maximum number of strings in a batch, or None for any number.
        max_tokens: the maximum number of tokens in a batch, with padding (a single string may have more), or None.
        same_length: whether all strings of a batch have the same length, and no padding.
    """
    batch: list[int] = []
    for number in sorted(range(len(lengths)), key=lambda number: lengths[number]):
        too_many = batch_size is not None and len(batch) == batch_size
        too_long = max_tokens is not None and (len(batch) + 1) * lengths[number] > max_tokens
        differs = same_length and batch and lengths[batch[0]] != lengths[number]
        if batch and (too_many or too_long or differs):
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch
