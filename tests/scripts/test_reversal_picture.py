"""The picture of ww^R shows every run by the paper's protocol."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from fairseq_stack.evaluation.cfl_result import CFLResult
from fairseq_stack.plots.style import figure

FOLDER = Path(__file__).resolve().parents[2] / "scripts" / "experiments"


def test_curves(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(FOLDER)
    script = importlib.import_module("reversal_picture")
    results = [CFLResult.read(path) for path in script.RESULTS.glob("lstm*-paper/test.json")]
    expected = [[scores.difference.value for scores in result.by_length] for result in results]
    with figure(tmp_path / "a.png", 1, 1, (4, 3)) as panels:
        script.draw_curves(panels[0, 0])
        drawn = [list(line.get_ydata()) for line in panels[0, 0].get_lines() if line.get_marker() != "None"]
    assert sorted(drawn) == sorted(expected)
