"""scripts/experiments/reversal_picture.py: the picture of the README."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from tests.commands.running import REPOSITORY


def test_it_is_drawn(script: ModuleType, tmp_path: Path) -> None:
    script.main(str(REPOSITORY / "examples/models/lstm-nd-unmarked-reversal"), str(tmp_path / "reversal.png"))
    assert (tmp_path / "reversal.png").read_bytes().startswith(b"\x89PNG")
