"""The hidden folder in which a run writes a folder before it moves it into place, and what killed runs leave there.

A run that writes the folder NAME makes ``.NAME.partial-DIGEST-ID/`` next to it, with

- ``lock``: an empty file that the run holds a lock on;
- ``new/``: what the run writes;
- ``old/``: while NAME is replaced, its previous content;
- ``gone/``: the same, once it is known to be an unchanged corpus, which is deleted.

NAME is replaced in two steps: NAME becomes ``old``, ``new`` becomes NAME. The leftovers of a killed run show how far
it got. If ``new`` is beside ``old``, the user has nothing except ``old``. If ``new`` is absent, the new folder was
complete and in its place.

**Which runs are dead.** The kernel drops a lock when its process ends, however it ends. But on a file system that
several machines share, the lock of another machine may be invisible, so DIGEST also stands for this machine since its
last boot: folders of other machines are left alone. If the file system has no locks, no run counts as dead.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import hashlib
import os
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path

from ..errors import PrepareError
from ..progress import say
from .replacing import check_replaceable

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""Linux's name for the current boot of this machine; containers on one machine share it, as they share locks."""


@dataclass
class Staging:
    """The hidden folder of this run, or of a killed run that this run cleans up after.

    Attributes:
        folder: the hidden folder.
        target: the folder whose place :attr:`new` takes.
        lock: the file descriptor whose lock says that the run is alive; None before the folder is made, and if the
            file system has no locks.
    """

    folder: Path
    target: Path
    lock: int | None = None

    @property
    def new(self) -> Path:
        """The folder that the run writes."""
        return self.folder / "new"

    @property
    def old(self) -> Path:
        """The previous target, while the target is being replaced."""
        return self.folder / "old"

    @classmethod
    def beside(cls, target: Path) -> Staging:
        """The hidden folder of a run that writes ``target``, which is not made yet."""
        return cls(target.with_name(f"{_prefix(target)}{uuid.uuid4().hex[:12]}"), target)

    def make(self) -> None:
        """Make the hidden folder and take its lock.

        Raises:
            OSError: it cannot be made.
        """
        self.folder.mkdir()
        self.lock = _locked(self.folder)

    def install(self) -> None:
        """Move :attr:`new` into the target's place; the previous target becomes :attr:`old`."""
        if os.path.lexists(self.target):
            self.target.rename(self.old)
        self.new.rename(self.target)

    def settle(self) -> None:
        """Remove the hidden folder; the user's only copy of a corpus is first put back, or else kept and named."""
        with contextlib.suppress(OSError, PrepareError):
            if os.path.lexists(self.new):
                if not os.path.lexists(self.target):
                    self.old.rename(self.target)
            else:
                check_replaceable(self.old)  # once more: a file may have changed until the target was moved away
                self.old.rename(self.folder / "gone")
        if os.path.lexists(self.old):
            say(f"{self.old} holds the previous content of {self.target}; move it, or delete it")
        else:
            for part in (self.new, self.folder / "gone"):
                shutil.rmtree(part, ignore_errors=True)
            with contextlib.suppress(OSError):
                (self.folder / "lock").unlink(missing_ok=True)
                self.folder.rmdir()
        if self.lock is not None:
            os.close(self.lock)


def clear_leftovers(target: Path) -> None:
    """Remove what killed runs left beside ``target``, put back what they had moved away, and say so.

    What another process or another machine may still be writing stays.
    """
    for folder in hidden_folders(target):
        with contextlib.suppress(OSError):
            folder.rmdir()  # its run was killed before it took the lock
            continue
        try:
            lock = _locked(folder)
        except OSError:  # its run has just removed it, or belongs to another user
            continue
        if lock is None:
            continue
        before = os.path.lexists(target)
        Staging(folder, target, lock).settle()
        if not before and os.path.lexists(target):
            say(f"put back {target}, which a killed run was replacing")
        elif not folder.exists():
            say(f"removed {folder}, left by a killed run")


def hidden_folders(target: Path) -> list[Path]:
    """The hidden folders of this machine's runs that write ``target``, or wrote it and were killed."""
    return sorted(target.parent.glob(f"{glob.escape(_prefix(target))}*"))


def _locked(folder: Path) -> int | None:
    """The lock of a hidden folder, now held; None if another run holds it, or if the file system has no locks."""
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def _prefix(target: Path) -> str:
    """How the names of the hidden folders begin: in full, a long name would leave no room for the rest."""
    digest = hashlib.sha256(os.fsencode(f"{_machine()}/{target.name}")).hexdigest()[:12]
    return f".{target.name[:40]}.partial-{digest}-"


def _machine() -> str:
    """A name of this machine since its last boot; where there is none, one that no other run has."""
    try:
        return BOOT_ID.read_text()
    except OSError:
        return uuid.uuid4().hex
