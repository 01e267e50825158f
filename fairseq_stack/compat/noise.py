"""Silence useless warnings of fairseq and its libraries, each by its message, never by category."""

from __future__ import annotations

import logging
import warnings

from fairseq_stack.compat.replacing import sets

HARMLESS = (
    # fairseq is written for an earlier hydra, and uses its deprecated parts.
    r"hydra\.experimental",
    r"\s*The version_base parameter is not specified",
    r"\s*The strict flag in the compose API is deprecated",
    r"[^@]*@package _group_",
    r"\s*'[^']*' is validated against ConfigStore schema",
    # fairseq always asks for pinned memory, and names autocast and scripted functions as earlier versions of torch did.
    r"'pin_memory' argument is set as true but no accelerator is found",
    r".*torch\.cuda\.amp\.\w+\(args\.\.\.\)` is deprecated",
    r".*torch\.jit\.\w+.* is deprecated",
    # A causal mask holds numbers, a padding mask holds truth values; torch accepts both.
    r".*mismatched key_padding_mask and attn_mask",
)
"""Regular expressions for the beginnings of the messages."""


@sets("warnings")
def silence_harmless_warnings() -> None:
    """Filter irrelevant warnings of fairseq's libraries: 26 lines whenever a command starts.

    They are in :data:`HARMLESS`.

    Unnecessary with a fairseq that is written for the current hydra and torch.
    """
    for message in HARMLESS:
        warnings.filterwarnings("ignore", message=message)
    # An empty line in a column that is only read with --past-target; elsewhere this warning means a wrong number.
    warnings.filterwarnings("ignore", message="overflow", module=r"fairseq\.data\.token_block_dataset")
    logging.getLogger("hydra.core.utils").setLevel(logging.INFO)  # it notes two names at every start
