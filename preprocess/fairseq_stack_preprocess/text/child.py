"""Run fairseq-preprocess as a child that ends whenever its parent ends: ``python child.py PARENT ARGUMENT...``.

If the parent is stopped, the processes of ``--workers`` would otherwise wait for work for ever.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import signal
import sys

PR_SET_PDEATHSIG = 1
"""Option of Linux's prctl that sets the signal that the calling process gets when its parent ends."""


def end_with(parent: int) -> None:
    """End this process when its parent, the process ``parent``, ends or has ended. Works only on Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def main() -> None:
    """Run fairseq-preprocess; the processes of its ``--workers`` end with it."""
    end_with(int(sys.argv.pop(1)))
    main_process = os.getpid()
    os.register_at_fork(after_in_child=lambda: end_with(main_process))
    runpy.run_module("fairseq_cli.preprocess", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
