"""Decoding one token a step."""

from __future__ import annotations

from typing import Any

IncrementalState = dict[str, dict[str, Any]]


def count_step(decoder: Any, incremental_state: IncrementalState, num_tokens: int) -> None:
    """Check that a decoder is given one token more than at the step before, and note how many there are.

    Raises:
        ValueError: there are not: fairseq's decoders would silently skip the tokens between.
    """
    saved = decoder.get_incremental_state(incremental_state, "length")
    num_before = 0 if saved is None else saved["length"]
    if num_tokens != num_before + 1:
        raise ValueError(
            f"incremental decoding takes one token a step: expected {num_before + 1} previous output tokens, "
            f"got {num_tokens}"
        )
    decoder.set_incremental_state(incremental_state, "length", {"length": num_tokens})
