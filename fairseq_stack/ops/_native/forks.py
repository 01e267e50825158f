"""What has to happen before this process forks: threads that are ending let go of MKL's locks.

PyTorch's matrix products on x86 processors are those of MKL. MKL keeps books on the memory of each thread, behind spin
locks. A thread that has computed a product takes them once more when it ends, to give its memory back, and
``Thread.join`` returns before that. A child that is forked at this moment inherits a lock that nobody will release, and
its first product spins for ever.
"""

import os
import threading
import time
from pathlib import Path

import torch

__all__ = ["wait_for_ending_threads"]

TASKS = Path("/proc/self/task")  # the threads of this process, on Linux
MOST_TICKS = 3  # of a thread's processor time, a hundredth of a second each: a thread needs much less to end


def wait_for_ending_threads() -> None:
    """Return when all other threads sleep or have ended, except those that have computed for ``MOST_TICKS`` meanwhile.

    Such a thread is not ending but at work. It may hold a lock as well, and nothing can be done about that here.
    """
    first_ticks: dict[str, int] = {}
    asleep = None
    while True:
        threads = _other_threads()
        ending = [
            name
            for name, (state, ticks) in threads.items()
            if state == "R" and ticks - first_ticks.setdefault(name, ticks) < MOST_TICKS
        ]
        # One look is not a moment: a thread that was asleep may since have been woken by one that has ended since.
        if not ending and asleep == threads.keys():
            return
        asleep = None if ending else threads.keys()
        time.sleep(1e-4)


def _other_threads() -> dict[str, tuple[str, int]]:
    """The state of each thread but this one, and its processor time in ticks."""
    threads = {}
    for folder in TASKS.iterdir():
        if folder.name != str(threading.get_native_id()):
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            threads[folder.name] = fields[0], int(fields[11]) + int(fields[12])
    return threads


if torch.backends.mkl.is_available() and TASKS.is_dir():
    os.register_at_fork(before=wait_for_ending_threads)
