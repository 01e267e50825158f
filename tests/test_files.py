"""Files that appear complete or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from fairseq_stack.errors import UserError
from fairseq_stack.files import read_lines, read_text, require_writable, written_whole


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "new.txt"
    with written_whole(path) as file:
        file.write(b"whole")
        assert not path.exists()
    assert path.read_bytes() == b"whole"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_the_old_file(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "old.txt"
    path.write_bytes(b"old")
    with pytest.raises(error), written_whole(path) as file:
        file.write(b"half")
        raise error
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("operation", ["fsync", "replace"])
def test_a_failure_of_the_system(tmp_path: Path, operation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "old.txt"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, operation, fail)
    with pytest.raises(UserError) as caught, written_whole(path) as file:
        file.write(b"new")
    assert str(caught.value) == f"cannot write {path}: No space left on device"
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_can_be_written_is_left_as_it_is(tmp_path: Path) -> None:
    old = tmp_path / "old.txt"
    old.write_bytes(b"old")
    for path in (old, tmp_path / "new.txt", Path("/dev/null")):
        require_writable(path)
    assert list(tmp_path.iterdir()) == [old]
    assert old.read_bytes() == b"old"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "Is a directory"),
        ("no/a", "No such file or directory"),
        ("f/a", "Not a directory"),
        ("x" * 250, "name too"),
    ],
    ids=["folder", "no-folder", "in-a-file", "long"],
)
def test_a_file_that_cannot_be_written(tmp_path: Path, name: str, problem: str) -> None:
    (tmp_path / "f").touch()
    with pytest.raises(UserError, match=rf"^cannot write {tmp_path / name}: .*{problem}"):
        require_writable(tmp_path / name)


def test_a_device_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(UserError, match=r"^cannot write /dev/null: Permission denied$"):
        require_writable(Path("/dev/null"))


def test_a_folder_in_its_place(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"^cannot write {tmp_path}: Is a directory$"), written_whole(tmp_path):
        raise AssertionError("there is no file to write")


def test_what_is_not_a_regular_file_is_written_directly() -> None:
    reading, writing = os.pipe()
    with written_whole(Path(f"/dev/fd/{writing}")) as file:
        file.write(b"through a pipe")
    assert os.read(reading, 100) == b"through a pipe"
    os.close(reading)
    os.close(writing)


def test_the_name_of_the_incomplete_file(tmp_path: Path) -> None:
    path, beside = tmp_path / "a", tmp_path / "a.tmp"
    beside.write_bytes(b"of a process that was killed")
    with written_whole(path, beside) as file:
        assert file.name == str(beside)
    assert path.read_bytes() == b""
    assert list(tmp_path.iterdir()) == [path]


def test_ends_of_lines(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"a\r\nb\x85")
    with pytest.raises(UserError, match=rf"^{path} is not UTF-8: invalid start byte at byte 4$"):
        read_text(path)
    path.write_bytes(b"a\r\nb\n")
    assert read_text(path) == "a\nb\n"
    assert read_lines(path) == ["a\r", "b"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to(target)
    with written_whole(link) as file:
        file.write(b"new")
    assert link.is_symlink() and target.read_bytes() == b"new"
