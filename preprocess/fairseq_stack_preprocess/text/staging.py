"""The hidden folder in which a run makes a folder before moving it into place, and what killed runs leave there.

A run that writes the folder NAME makes ``.NAME.partial-MACHINE-ID/`` beside it, with

- ``lock``: an empty file that the run holds a lock on;
- ``new/``: what the run writes;
- ``old/``: while NAME is replaced, its previous content.

NAME is replaced in three steps: NAME becomes ``old``, ``new`` becomes NAME, ``old`` is deleted. But if the user changed
a file of NAME just before the first step, ``old`` is kept. The leftovers of a killed run show how far it got. If
``new`` is beside ``old``, the user has nothing except ``old``. If ``new`` is absent, the new folder was complete and in
its place.

**Which runs are dead.** The kernel drops a lock when its process ends, however it ends. But on a file system that
several machines share, the lock of another machine may be invisible. So MACHINE identifies the current boot of this
machine: only folders with this mark are judged by their locks, and all others are left alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import uuid
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from .progress import say
from .replacing import is_corpus, remove_corpus

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""Linux's name for the current boot of this machine; containers on one machine share it, as they share locks."""

UNKNOWN_MACHINE = "unknown"

LONGEST_LABEL = 200
"""A NAME of up to this many bytes is part of the hidden folder's name; file names have at most 255 bytes."""


class Lock(Enum):
    """The result of trying to take a lock; if the file system has no locks, no run counts as dead."""

    HELD = auto()
    TAKEN = auto()
    UNSUPPORTED = auto()


@dataclass(frozen=True)
class Staging:
    """The hidden folder of this run, or of a killed run that this run cleans up after.

    Attributes:
        folder: the hidden folder.
        target: the folder whose place :attr:`new` takes.
        lock: the file descriptor whose lock says that the run is alive.
    """

    folder: Path
    target: Path
    lock: int

    @property
    def new(self) -> Path:
        """The folder that the run writes."""
        return self.folder / "new"

    @property
    def old(self) -> Path:
        """The previous target, while the target is being replaced."""
        return self.folder / "old"

    @classmethod
    def create(cls, target: Path) -> Staging:
        """Make the hidden folder for ``target``, with an empty folder :attr:`new` in it.

        Raises:
            OSError: it cannot be made.
        """
        while True:
            folder = target.with_name(f"{_prefix(target)}{_machine()}-{uuid.uuid4().hex[:12]}")
            folder.mkdir()
            # Until the lock is held, another run may mistake the folder for a killed run's folder and remove it.
            with contextlib.suppress(FileNotFoundError):
                lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o666)
                if _lock(lock) is not Lock.TAKEN:
                    break
                os.close(lock)
        staging = cls(folder, target, lock)
        try:
            staging.new.mkdir()
        except OSError:
            staging.settle()
            raise
        return staging

    def install(self) -> None:
        """Move :attr:`new` into the target's place; the previous target becomes :attr:`old`."""
        if os.path.lexists(self.target):
            self.target.rename(self.old)
        self.new.rename(self.target)

    def settle(self) -> None:
        """Remove the hidden folder; the user's only copy of a corpus is first put back, or else kept and named."""
        try:
            self._put_back_or_remove_old()
            if not os.path.lexists(self.old):
                shutil.rmtree(self.new, ignore_errors=True)
                (self.folder / "lock").unlink()
                self.folder.rmdir()
        except OSError as error:
            say(f"cannot remove {self.folder}: {error.strerror}")
        finally:
            os.close(self.lock)
        if os.path.lexists(self.old):
            say(f"{self.old} holds the previous content of {self.target}; move it, or delete it")

    def _put_back_or_remove_old(self) -> None:
        if not os.path.lexists(self.new):
            remove_corpus(self.old)
        elif os.path.lexists(self.old) and not os.path.lexists(self.target):
            self.old.rename(self.target)


def clear_leftovers(target: Path) -> None:
    """Remove what killed runs left beside ``target``, put back what they had moved away, and say so.

    What another process or another machine may still be writing stays.
    """
    for folder in _hidden(target, rf"{_machine()}-[0-9a-f]{{12}}"):
        with contextlib.suppress(OSError):
            if not any(folder.iterdir()):
                folder.rmdir()
                continue
        staging = _of_killed_run(folder, target)
        if staging is None:
            continue
        before = os.path.lexists(target)
        staging.settle()
        if not before and os.path.lexists(target):
            say(f"put back {target}, which a killed run was replacing")
        elif not folder.exists():
            say(f"removed {folder}, left by a killed run")
    _put_back_of_earlier_version(target)


def moved_away(target: Path) -> Path | None:
    """Where a killed run left what was at ``target``, if :func:`clear_leftovers` would put that back."""
    if os.path.lexists(target):
        return None
    for folder in _hidden(target, rf"{_machine()}-[0-9a-f]{{12}}"):
        if os.path.lexists(folder / "old") and os.path.lexists(folder / "new"):
            return folder / "old"
    return _of_earlier_version(target)


def _of_killed_run(folder: Path, target: Path) -> Staging | None:
    """The hidden folder with its lock, now held by this run; None if its run may be alive."""
    if _machine() == UNKNOWN_MACHINE:
        return None
    try:
        lock = os.open(folder / "lock", os.O_RDWR)
    except OSError:
        return None
    if _lock(lock) is not Lock.HELD:
        os.close(lock)
        return None
    return Staging(folder, target, lock)


def _lock(lock: int) -> Lock:
    """Try to take the lock of an open file."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return Lock.TAKEN
    except OSError:
        return Lock.UNSUPPORTED
    # A run that removes the folder holds the lock while it deletes this file.
    return Lock.HELD if os.fstat(lock).st_nlink else Lock.TAKEN


def _machine() -> str:
    try:
        return re.sub(r"[^0-9a-f]", "", BOOT_ID.read_text())[:12]
    except OSError:
        return UNKNOWN_MACHINE


def _hidden(target: Path, rest: str, role: str = "partial") -> list[Path]:
    """The folders beside ``target`` whose names are the prefix of a role followed by a match of ``rest``."""
    pattern = re.compile(re.escape(_prefix(target, role)) + rest)
    try:
        paths = sorted(target.parent.iterdir())
    except OSError:
        return []
    return [path for path in paths if pattern.fullmatch(path.name) and path.is_dir() and not path.is_symlink()]


def _prefix(target: Path, role: str = "partial") -> str:
    name = os.fsencode(target.name)
    label = target.name if len(name) <= LONGEST_LABEL else hashlib.sha256(name).hexdigest()[:32]
    return f".{label}.{role}-"


def _of_earlier_version(target: Path) -> Path | None:
    """The folder that fairseq_stack 0.1 moved away before it was killed, if exactly one folder can be it."""
    found = [folder for folder in _hidden(target, r"[0-9a-f]{12}", "old") if is_corpus(folder)]
    return found[0] if len(found) == 1 else None


def _put_back_of_earlier_version(target: Path) -> None:
    old = _of_earlier_version(target)
    if old is not None and not os.path.lexists(target):
        old.rename(target)
        say(f"put back {target}, which a killed run was replacing")
