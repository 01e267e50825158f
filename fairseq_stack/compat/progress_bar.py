"""``fairseq.logging.progress_bar``: the log of ``--log-file`` has each line once."""

from __future__ import annotations

import logging
import os
from typing import Any

from fairseq_stack.compat.replacing import replaces


@replaces("fairseq.logging.progress_bar:progress_bar")
def progress_bar(original: Any, *args: Any, log_file: str | None = None, **kwargs: Any) -> Any:
    """Open the file of ``--log-file`` once, not for every epoch and validation.

    After the k-th, fairseq writes each line k times, and a long training run fails because too many files are open.

    Unnecessary with a fairseq that opens it once.
    """
    handlers = logging.getLogger("fairseq.logging.progress_bar").handlers
    is_open = {handler.baseFilename for handler in handlers if isinstance(handler, logging.FileHandler)}
    if log_file is not None and os.path.abspath(log_file) in is_open:
        log_file = None
    return original(*args, log_file=log_file, **kwargs)
