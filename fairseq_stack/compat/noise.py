"""Silence what fairseq and its libraries say in vain: useless warnings, each by its message, and useless logs."""

from __future__ import annotations

import logging
import warnings

from fairseq_stack.compat.messages import command
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


@sets("the loggers of fairseq")
def silence_logs() -> None:
    """Log only warnings and errors in Python and in ``fairseq-interactive``; log no configuration when scoring.

    No command logs how fairseq reuses batches: four lines per epoch, and per sentence in Python.

    Importing fairseq sets the root logger to DEBUG, so a program sees all that fairseq and its other libraries log: the
    root logger is set back to WARNING, and in commands to INFO. The configuration of commands that score has hundreds
    of options that they do not read, and a model that nobody chose. That of ``fairseq-train`` stays in its log, which
    ``fairseq-stack plot`` reads.

    Unnecessary with a fairseq that leaves the root logger alone, and logs such lines at level DEBUG.
    """
    if logging.getLogger().level == logging.DEBUG:
        logging.getLogger().setLevel(logging.INFO if command() else logging.WARNING)
    is_silent = command() in (None, "fairseq-interactive")
    logging.getLogger("fairseq").setLevel(logging.WARNING if is_silent else logging.NOTSET)
    logging.getLogger("fairseq.hub_utils").setLevel(logging.INFO)  # what ``verbose=True`` asks for
    logging.getLogger("fairseq.tasks.fairseq_task").setLevel(logging.WARNING)
    logging.getLogger("fairseq_cli.interactive").setLevel(logging.WARNING)
    for name in ("eval_lm", "generate", "validate"):
        logging.getLogger(f"fairseq_cli.{name}").addFilter(_is_no_configuration)


def _is_no_configuration(record: logging.LogRecord) -> bool:
    from omegaconf import DictConfig

    return not isinstance(record.msg, DictConfig)
