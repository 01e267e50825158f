"""The part of the benchmark that takes the code of others, with clones made up here."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from scripts.benchmark import authors
from scripts.benchmark.command import main


def test_clones_with_modules_of_the_same_names(tmp_path: Path) -> None:
    numbers = []
    for number in range(2):
        package = tmp_path / str(number) / "src" / "made_up_models"
        package.mkdir(parents=True)
        (package / "stack.py").write_text(f"NUMBER = {number}\n")
        with authors.importing_from(tmp_path / str(number)):
            numbers.append(import_module("made_up_models.stack").NUMBER)
    assert numbers == [0, 1]


def test_a_folder_that_is_no_clone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--quick", "--only", "authors", "--authors", str(tmp_path)]) == 1
    assert f"{tmp_path}: No module named" in capsys.readouterr().err
