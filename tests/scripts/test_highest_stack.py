"""scripts/experiments/highest_stack.py: what the stack does with strings w w^R."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.commands.running import REPOSITORY


def test_a_model_that_reverses(script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    strings = tmp_path / "strings.txt"
    strings.write_text("0 1 1 0 0 1 1 0 1 0 1 1 1 0 1 1 1 1 1 0 0 1 1 1 1 1 0 1 1 1 0 1 0 1 1 0 0 1 1 0\n" * 2)
    model = REPOSITORY / "examples" / "models" / "lstm-nd-unmarked-reversal"
    script.main(str(strings), str(model))
    name, near, _, entropy, push, pop = capsys.readouterr().out.splitlines()[1].split("\t")
    assert (name, near) == (str(model), "2 of 2")
    assert 0 < float(entropy) < 1
    assert min(float(push), float(pop)) > 0.5
