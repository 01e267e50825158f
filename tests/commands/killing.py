"""Runs code in a process that kills itself."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable


def is_killed(run: Callable[[], object]) -> bool:
    """Run what may kill its process in a fork; False if it came to its end."""
    child = os.fork()
    if child == 0:
        try:
            run()
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL)
    return status != 0
