"""Output folders appear complete or not at all, and replace another only when told to."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairseq_stack_preprocess.errors import PrepareError
from fairseq_stack_preprocess.text.manifest import Manifest
from fairseq_stack_preprocess.text.output import output_folder, write_lines
from tests.preprocess.corpus_folders import names


def write(target: Path, text: str, *, force: bool = False) -> None:
    """Make a complete output folder."""
    with output_folder(target, force=force) as folder:
        write_lines(folder / "file", [text])
        Manifest("test", {}, {}, {}).write(folder)


def test_force_puts_the_old_folder_back_when_renaming_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "out", "old")
    rename = Path.rename

    def fail_for_the_new_one(self: Path, target: Path) -> Path:
        if self.name == "new":
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail_for_the_new_one)
    with pytest.raises(PrepareError, match=r"cannot write .*/out: No space left on device$"):
        write(tmp_path / "out", "new", force=True)
    assert names(tmp_path) == ["out"]
    assert (tmp_path / "out" / "file").read_text() == "old\n"


def test_target_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(PrepareError, match="already exists"), output_folder(tmp_path / "out"):
        write(tmp_path / "out", "other")
    assert names(tmp_path) == ["out"]
    assert (tmp_path / "out" / "file").read_text() == "other\n"


@pytest.mark.parametrize(
    ("target", "force", "message"),
    [
        ("file/out", False, r"cannot make a folder in .*file: Not a directory$"),
        ("file/more/out", False, r"cannot make a folder in .*file/more: Not a directory$"),
        ("file", False, "file already exists; give --force"),
        ("file", True, "file is not a folder"),
    ],
)
def test_a_place_that_cannot_be_written(target: str, force: bool, message: str, tmp_path: Path) -> None:
    write_lines(tmp_path / "file", ["text"])
    with pytest.raises(PrepareError, match=message):
        write(tmp_path / target, "new", force=force)
    assert names(tmp_path) == ["file"]
