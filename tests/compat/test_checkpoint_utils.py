"""Checkpoints are whole at every moment, wherever a process is killed while it saves, and where writing fails."""

from __future__ import annotations

import builtins
import errno
import os
import shutil
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.dataclass.configs import CheckpointConfig
from fairseq.file_io import PathManager

from fairseq_stack.errors import UserError

pytestmark = pytest.mark.usefixtures("shims")
MID_EPOCH = {"save_interval_updates": 2, "keep_interval_updates": 1, "no_epoch_checkpoints": True}
END_OF_EPOCH = {"keep_last_epochs": 1, "keep_best_checkpoints": 1}
SCENARIOS = pytest.mark.parametrize(
    ("end_of_epoch", "settings"), [(False, MID_EPOCH), (True, END_OF_EPOCH)], ids=["mid-epoch", "end-of-epoch"]
)


class Saver:
    """Saves a checkpoint of so many updates as ``fairseq-train`` does, from its start on."""

    def __init__(self, folder: Path, end_of_epoch: bool, **settings: Any) -> None:
        self.folder = folder
        self.end_of_epoch = end_of_epoch
        self.cfg = CheckpointConfig(save_dir=str(folder), **settings)

    def save(self, updates: int) -> None:
        checkpoint_utils.verify_checkpoint_directory(self.cfg.save_dir)
        vars(checkpoint_utils.save_checkpoint).pop("best", None)
        epoch = SimpleNamespace(epoch=updates, end_of_epoch=lambda: self.end_of_epoch, state_dict=dict)
        checkpoint_utils.save_checkpoint(self.cfg, self._trainer(updates), epoch, val_loss=1 / updates)

    def _trainer(self, updates: int) -> Any:
        def save_checkpoint(filename: str, extra_state: dict[str, Any]) -> str:
            state = {"updates": updates, "weight": torch.full((1000,), float(updates))}
            checkpoint_utils.torch_persistent_save(state, filename)
            return filename

        return SimpleNamespace(
            data_parallel_rank=0,
            consolidate_optimizer=lambda: None,
            should_save_checkpoint_on_current_rank=True,
            get_num_updates=lambda: updates,
            checkpoint_suffix="",
            task=None,
            save_checkpoint=save_checkpoint,
        )

    def updates(self) -> dict[str, int]:
        """The number of updates in every file that is named like a checkpoint, all of which must be whole."""
        results = {}
        for path in sorted(self.folder.glob("*.pt")):
            state = torch.load(path)
            assert state["weight"].eq(state["updates"]).all()
            results[path.name] = state["updates"]
        return results


class Operations:
    """Counts what a process does to files, and calls a function with the name of each operation from one of them on.

    It is called before the operation, and where that is a write when half of it has been written.
    """

    def __init__(self, start: int, instead: Callable[[str], None]) -> None:
        self.left, self.instead = start, instead

    def next(self, name: str) -> None:
        self.left -= 1
        if self.left < 0:
            self.instead(name)

    def install(self, patch: pytest.MonkeyPatch) -> None:
        for name in ("replace", "rename", "remove", "unlink", "fsync"):
            patch.setattr(os, name, self._counted(name, getattr(os, name)))
        patch.setattr(os, "sendfile", self._sendfile)  # of shutil.copyfile
        patch.setattr(builtins, "open", self._open)

    def _counted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.next(name)
            return function(*args, **kwargs)

        return counted

    def _sendfile(self, target: int, source: int, offset: int, count: int) -> int:
        rest = os.pread(source, count, offset)
        sent = os.pwrite(target, rest[: (len(rest) + 1) // 2], offset)
        self.next("write")
        return sent

    def _open(self, path: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if mode != "wb":
            return OPEN(path, mode, *args, **kwargs)
        self.next("open")
        return CountingFile(OPEN(path, mode, *args, **kwargs), lambda: self.next("write"))


OPEN = builtins.open


class CountingFile:
    """A file that calls ``operation`` in the midst of each write."""

    def __init__(self, file: Any, operation: Callable[[], None]) -> None:
        self._file, self._operation = file, operation

    def write(self, data: Any) -> int:
        data = bytes(data)
        self._file.write(data[: len(data) // 2])
        self._file.flush()
        self._operation()
        self._file.write(data[len(data) // 2 :])
        return len(data)

    def __enter__(self) -> CountingFile:
        return self

    def __exit__(self, *args: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


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


def save_until(at: int, saver: Saver, updates: int) -> None:
    """Save, and kill this process at an operation."""
    Operations(at, lambda name: os.kill(os.getpid(), signal.SIGKILL)).install(pytest.MonkeyPatch())
    saver.save(updates)


@SCENARIOS
def test_killed_at_each_operation(tmp_path: Path, end_of_epoch: bool, settings: dict[str, Any]) -> None:
    before, after = (Saver(tmp_path / name, end_of_epoch, **settings) for name in ("before", "after"))
    for saver in (before, after):
        saver.save(2)
    after.save(4)
    old, new = before.updates(), after.updates()
    assert set(old.values()) == {2} and set(new.values()) == {4}

    at, names = 0, set()
    while True:
        killed = Saver(tmp_path / f"killed-{at}", end_of_epoch, **settings)
        shutil.copytree(before.folder, killed.folder)
        if not is_killed(partial(save_until, at, killed, 4)):
            break
        actual = killed.updates()
        names |= {path.name for path in killed.folder.iterdir()}
        assert old.keys() <= actual.keys() or actual["checkpoint_last.pt"] == 4, (
            "removed before the new one is in place"
        )
        if actual["checkpoint_last.pt"] == 4:
            assert new.items() <= actual.items()
        killed.save(4)
        assert sorted(path.name for path in killed.folder.iterdir()) == sorted(new)
        assert killed.updates() == new
        shutil.rmtree(killed.folder)
        at += 1
    assert at > 20
    assert {"checkpoint_best.pt.tmp", "checkpoint_last.pt.tmp"} <= names, "it was killed while it wrote each of them"


@SCENARIOS
def test_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end_of_epoch: bool, settings: dict[str, Any]
) -> None:
    def disk_is_full(operation: str) -> None:
        if operation in ("open", "write", "fsync"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    saver = Saver(tmp_path, end_of_epoch, **settings)
    saver.save(2)
    old = saver.updates()
    failures = 0
    while True:
        with monkeypatch.context() as patch:
            Operations(failures, disk_is_full).install(patch)
            try:
                saver.save(4)
                break
            except UserError as error:
                message = str(error)
        assert "\n" not in message
        assert f"cannot write the checkpoint {tmp_path}/checkpoint" in message
        assert "No space left on device; earlier checkpoints are unchanged" in message
        assert message.endswith("; once this is fixed, the same command continues from the last of them")
        assert not list(tmp_path.glob("*.tmp"))
        actual = saver.updates()
        assert old.keys() <= actual.keys()
        assert actual["checkpoint_last.pt"] == 2
        failures += 1
    assert failures > 20


def test_a_failure_that_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second attempt begins with an empty file."""
    failures: list[str] = []

    def fail_once(operation: str) -> None:
        if not failures:
            failures.append(operation)
            raise OSError(errno.EIO, "a network file system")

    monkeypatch.setattr("fairseq_stack.compat.file_io._SECONDS_BETWEEN", 0)
    saver = Saver(tmp_path, False, **MID_EPOCH)
    with monkeypatch.context() as patch:
        Operations(10, fail_once).install(patch)
        saver.save(2)
    assert failures == ["write"]
    assert saver.updates() == {"checkpoint_2_2.pt": 2, "checkpoint_best.pt": 2, "checkpoint_last.pt": 2}
    assert len({path.stat().st_size for path in tmp_path.iterdir()}) == 1


def test_other_errors_pass(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="<lambda>"):
        checkpoint_utils.torch_persistent_save(lambda: None, str(tmp_path / "checkpoint.pt"))
    assert not list(tmp_path.iterdir())


def test_a_copy_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "a.pt").write_bytes(b"whole")
    with pytest.raises(UserError, match=r"cannot write the checkpoint .*missing/b.pt: No such file or directory"):
        PathManager.copy(str(tmp_path / "a.pt"), str(tmp_path / "missing" / "b.pt"))
    assert PathManager.copy(str(tmp_path / "a.pt"), str(tmp_path / "c.pt"))
    assert (tmp_path / "c.pt").read_bytes() == b"whole"


def test_only_unfinished_checkpoints_are_removed(tmp_path: Path) -> None:
    for name in ("checkpoint_1_2.pt.tmp", "checkpoint_last.pt.tmp", "checkpoint1.pt", "notes.tmp", "mine.pt.tmp"):
        (tmp_path / name).touch()
    checkpoint_utils.verify_checkpoint_directory(str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint1.pt", "mine.pt.tmp", "notes.tmp"]


@pytest.mark.parametrize("folder", ["file", "file/below"])
def test_a_save_dir_that_is_not_a_folder(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UserError, match=f"^--save-dir {tmp_path}/{folder}: Not a directory$"):
        checkpoint_utils.verify_checkpoint_directory(str(tmp_path / folder))
    assert (tmp_path / "file").read_text() == "mine"


def test_a_save_dir_in_which_no_file_can_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated, because a superuser can write to any folder."""

    def refuse(dir: str) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), dir)

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    with pytest.raises(UserError, match=f"^--save-dir {tmp_path}: Permission denied$"):
        checkpoint_utils.verify_checkpoint_directory(str(tmp_path))


def test_a_new_save_dir_is_made_and_files_of_the_user_stay(tmp_path: Path) -> None:
    checkpoint_utils.verify_checkpoint_directory(str(tmp_path / "new" / "folder"))
    assert not list((tmp_path / "new" / "folder").iterdir())
    (tmp_path / "dummy").write_text("mine")
    checkpoint_utils.verify_checkpoint_directory(str(tmp_path))
    assert (tmp_path / "dummy").read_text() == "mine"
