"""Where a folder is made before it takes its place: a hidden folder beside it, and what killed runs left there.

A run that writes the folder NAME makes ``.NAME.partial-MACHINE-ID/`` beside it, with

- ``lock``: an empty file that the run holds a lock on;
- ``new/``: what the run writes;
- ``old/``: while NAME is replaced, what was there before.

NAME is replaced in three steps: NAME becomes ``old``, ``new`` becomes NAME, ``old`` is deleted. What a killed run left
tells how far it had got: with ``new`` beside ``old``, ``old`` is all that the user has; without ``new``, the new folder
was complete and in its place.

**Which runs are dead.** The kernel drops a lock when its process ends, however it ends. But on a file system that
several machines share, the lock of another machine may not be seen. Hence MACHINE, which names the present start of
this machine: only folders with this mark are judged by their locks, and all others are left alone.
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
"""Linux's name for the present start of this machine; containers on one machine share it, as they share locks."""

UNKNOWN_MACHINE = "unknown"

LONGEST_LABEL = 200
"""Bytes of NAME up to which the hidden folder's name holds it as it is; names have at most 255 bytes."""


class Lock(Enum):
    """What came of taking a lock; without support by the file system, no run is ever taken for dead."""

    HELD = auto()
    TAKEN = auto()
    UNSUPPORTED = auto()


@dataclass(frozen=True)
class Staging:
    """The hidden folder of a run that is alive: this one, or that of a killed run which this one tidies up.

    Attributes:
        folder: the hidden folder.
        target: the folder that it is for.
        lock: the file descriptor whose lock says that the run is alive.
    """

    folder: Path
    target: Path
    lock: int

    @property
    def new(self) -> Path:
        """What the run writes."""
        return self.folder / "new"

    @property
    def old(self) -> Path:
        """What was at the target before, while it is replaced."""
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
            # Until the lock is held, another run may take the folder for that of a killed run and remove it.
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
        """Put :attr:`new` into the target's place; what is there becomes :attr:`old`."""
        if os.path.lexists(self.target):
            self.target.rename(self.old)
        self.new.rename(self.target)

    def settle(self) -> None:
        """Remove the hidden folder; what is the user's and nowhere else is put back first, or else kept and named."""
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
            say(f"{self.old} holds what was in {self.target} before; move it, or delete it")

    def _put_back_or_remove_old(self) -> None:
        if not os.path.lexists(self.new):
            remove_corpus(self.old)
        elif os.path.lexists(self.old) and not os.path.lexists(self.target):
            self.old.rename(self.target)


def clear_leftovers(target: Path) -> None:
    """Remove what killed runs left beside ``target``, put back what they had moved away, and say so.

    What another process may still write, or another machine, stays.
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
            say(f"put {target} back, which a run that was killed was replacing")
        elif not folder.exists():
            say(f"removed {folder}, left by a run that was killed")
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
    """The hidden folder with its lock, now held by us; None if its run is alive, or it is none of ours."""
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
    """Take the lock of an open file, if that can be."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return Lock.TAKEN
    except OSError:
        return Lock.UNSUPPORTED
    # Whoever removes the folder holds the lock when the file goes.
    return Lock.HELD if os.fstat(lock).st_nlink else Lock.TAKEN


def _machine() -> str:
    try:
        return re.sub(r"[^0-9a-f]", "", BOOT_ID.read_text())[:12]
    except OSError:
        return UNKNOWN_MACHINE


def _hidden(target: Path, rest: str, role: str = "partial") -> list[Path]:
    """The folders beside ``target`` whose names are the prefix of a role and what matches ``rest``."""
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
    """What fairseq_stack 0.1 moved away and did not put back when it was killed, if there is no doubt about it."""
    found = [folder for folder in _hidden(target, r"[0-9a-f]{12}", "old") if is_corpus(folder)]
    return found[0] if len(found) == 1 else None


def _put_back_of_earlier_version(target: Path) -> None:
    old = _of_earlier_version(target)
    if old is not None and not os.path.lexists(target):
        old.rename(target)
        say(f"put {target} back, which a run that was killed was replacing")
