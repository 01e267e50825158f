"""Runs that are killed lose nothing, and the next run tidies up after them."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from fairseq_stack_preprocess.cfl import language_corpus
from fairseq_stack_preprocess.errors import PrepareError
from fairseq_stack_preprocess.text import staging
from fairseq_stack_preprocess.text.output import check_target
from fairseq_stack_preprocess.text.staging import Staging
from tests.commands.killing import is_killed
from tests.helpers import hostile
from tests.preprocess.corpus_folders import names, small, snapshot

OLD = small()
NEW = small(seed=1)

CHANGES = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate")


def killed_at(change: int, run: Callable[[], object]) -> bool:
    """Run in a process that is killed before its n-th change to the file system; False if it made fewer."""

    def counted_run() -> None:
        left = change

        def count(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal left
            if event in CHANGES:
                left -= 1
                if not left:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        run()

    return is_killed(counted_run)


def killed_runs(
    folder: Path, run: Callable[[Path], object], every: int = 1, before: Callable[[Path], object] = lambda target: None
) -> Iterator[Path]:
    """The target of a run that was killed before its first change, and of others before each n-th one after it."""
    for change in itertools.count(1, every):
        target = folder / f"{change}" / "out"
        target.parent.mkdir()
        before(target)
        if not killed_at(change, partial(run, target)):
            return
        yield target


# One in three of the changes in every run of the tests.
SOME_OR_ALL = pytest.mark.parametrize("every", [3, hostile(1)])


@SOME_OR_ALL
def test_a_new_folder_killed_at_any_change(every: int, tmp_path: Path) -> None:
    language_corpus.prepare(NEW, tmp_path / "expected")
    expected, kills = snapshot(tmp_path / "expected"), 0
    for target in killed_runs(tmp_path, partial(language_corpus.prepare, NEW), every):
        kills += 1
        try:
            language_corpus.prepare(NEW, target)
        except PrepareError as error:
            assert "already exists" in str(error)  # it was complete
        assert names(target.parent) == ["out"]
        assert snapshot(target) == expected
    assert kills * every > 15


@SOME_OR_ALL
def test_a_replacement_killed_at_any_change(every: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name, options in (("old", OLD), ("new", NEW)):
        language_corpus.prepare(options, tmp_path / name)
    old, new = snapshot(tmp_path / "old"), snapshot(tmp_path / "new")
    kills = put_back = 0
    replace, make_old = partial(language_corpus.prepare, NEW, force=True), partial(language_corpus.prepare, OLD)
    for target in killed_runs(tmp_path, replace, every, make_old):
        kills += 1
        put_back += not target.exists()
        capfd.readouterr()
        # Without --force the next run is refused, but tidies up: either the old folder is there or the new one.
        with pytest.raises(PrepareError, match="already exists"):
            check_target(target)
        with pytest.raises(PrepareError, match="already exists"):
            language_corpus.prepare(NEW, target)
        assert names(target.parent) == ["out"]
        assert snapshot(target) in (old, new)
        replace(target)
        assert names(target.parent) == ["out"]
        assert snapshot(target) == new
    assert kills * every > 30
    assert put_back == 1 or every > 1  # between the two renames


def test_tidying_up_killed_at_any_change(tmp_path: Path) -> None:
    language_corpus.prepare(OLD, tmp_path / "old")
    old, kills = snapshot(tmp_path / "old"), 0

    def interrupted(target: Path) -> None:
        language_corpus.prepare(OLD, target)
        interrupt_between_the_renames(target)

    for target in killed_runs(tmp_path, staging.clear_leftovers, before=interrupted):
        kills += 1
        staging.clear_leftovers(target)
        assert names(target.parent) == ["out"]
        assert snapshot(target) == old
    assert kills > 2


def made_beside(target: Path) -> Staging:
    staging = Staging.beside(target)
    staging.make()
    return staging


def close(staging: Staging) -> None:
    """Drop the lock, as the kernel does when a run ends."""
    assert staging.lock is not None
    os.close(staging.lock)


def interrupt_between_the_renames(target: Path) -> Path:
    """Leave what a run leaves that is killed between its two renames; return the hidden folder."""
    made = made_beside(target)
    made.new.mkdir()
    target.rename(made.old)
    close(made)
    return made.folder


def test_two_folders_for_one_place_are_both_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "out"
    language_corpus.prepare(OLD, target)
    hidden = interrupt_between_the_renames(target)
    target.mkdir()
    (target / "mine").write_text("x")
    staging.clear_leftovers(target)
    assert (hidden / "old" / "manifest.json").is_file() and (target / "mine").is_file()
    assert f"{hidden / 'old'} holds the previous content of {target}" in capsys.readouterr().err


def test_a_live_process_is_left_alone_until_it_is_killed(tmp_path: Path) -> None:
    target = tmp_path / "out"
    program = (
        "import sys, pathlib; from fairseq_stack_preprocess.text.output import output_folder\n"
        "with output_folder(pathlib.Path(sys.argv[1])) as folder: print(folder, flush=True); input()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(target)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    folder = Path(process.stdout.readline().rstrip())
    staging.clear_leftovers(target)
    assert folder.is_dir()
    process.kill()
    process.communicate()
    assert folder.is_dir()
    staging.clear_leftovers(target)
    assert names(tmp_path) == []


def refuse(*arguments: object) -> int:
    raise PermissionError(13, "Permission denied")


@pytest.mark.parametrize(
    ("where", "name", "value"),
    [(staging, "_machine", lambda: "another"), (staging.os, "open", refuse)],
    ids=["another-machine", "another-user"],
)
def test_a_run_that_may_be_alive_is_left_alone(
    where: object, name: str, value: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = made_beside(tmp_path / "out")
    close(made)
    monkeypatch.setattr(where, name, value)
    staging.clear_leftovers(tmp_path / "out")
    assert made.folder.is_dir()
    monkeypatch.undo()
    staging.clear_leftovers(tmp_path / "out")
    assert not made.folder.exists()


def test_where_machines_have_no_name_no_run_is_taken_for_dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "BOOT_ID", tmp_path / "no such file")
    made = made_beside(tmp_path / "out")
    close(made)
    staging.clear_leftovers(tmp_path / "out")
    assert made.folder.is_dir()


def test_without_locks_no_run_is_taken_for_dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(file: int, operation: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(staging.fcntl, "flock", unsupported)
    made = made_beside(tmp_path / "out")
    made.new.mkdir()
    staging.clear_leftovers(tmp_path / "out")
    assert made.new.is_dir()
    made.install()
    made.settle()
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("name", [".out.partial-mine", ".out.old-0123456789ab"])
def test_folders_of_the_user_are_left_alone(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "lock").write_text("")
    (tmp_path / name / "thesis.tex").write_text("x")
    before = snapshot(tmp_path)
    language_corpus.prepare(OLD, tmp_path / "out")
    language_corpus.prepare(NEW, tmp_path / "out", force=True)
    assert {path: content for path, content in snapshot(tmp_path).items() if path.startswith(".")} == before


def test_names_of_255_bytes(tmp_path: Path) -> None:
    target = tmp_path / ("ä" * 127 + "a")
    language_corpus.prepare(OLD, target)
    interrupt_between_the_renames(target)
    language_corpus.prepare(NEW, tmp_path / ("ä" * 127 + "b"))
    with pytest.raises(PrepareError, match="already exists"):
        language_corpus.prepare(NEW, target)
    assert len(names(tmp_path)) == 2
