"""The log of ``--log-file`` has each line once."""

from __future__ import annotations

import logging
import os
from typing import Any

from .wrapping import Function, wrap_once


def write_each_line_once() -> None:
    """Have all progress bars of a process share one handler of a log.

    fairseq opens the log once more for every epoch and for every validation. After the k-th, each line is written k
    times, and a long training run fails because too many files are open. Unnecessary with a fairseq that opens it once.
    """
    from fairseq.logging import progress_bar

    wrap_once(progress_bar, "progress_bar", _with_one_handler)


def _with_one_handler(original: Function) -> Function:
    def bar(*args: Any, log_file: str | None = None, **kwargs: Any) -> Any:
        handlers = logging.getLogger("fairseq.logging.progress_bar").handlers
        is_open = {handler.baseFilename for handler in handlers if isinstance(handler, logging.FileHandler)}
        if log_file is not None and os.path.abspath(log_file) in is_open:
            log_file = None
        return original(*args, log_file=log_file, **kwargs)

    return bar
