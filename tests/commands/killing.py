"""Runs code in a process that is killed, or kills itself."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable


def is_killed(run: Callable[[], object], delay: float | None = None) -> bool:
    """Run in a fork; False if it came to its end before it was killed.

    Args:
        run: what may kill its process.
        delay: seconds after which it is killed, or None.
    """
    child = os.fork()
    if child == 0:
        try:
            run()
            os._exit(0)
        finally:
            os._exit(1)
    if delay is not None:
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL)
    return status != 0
