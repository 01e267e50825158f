"""The picture of ww^R shows every run by the paper's protocol."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from fairseq_stack.evaluation.cfl_result import CFLResult
from fairseq_stack.plots.style import figure

pytest.importorskip("matplotlib")


def test_curves(script: ModuleType, tmp_path: Path) -> None:
    results = [CFLResult.read(path) for path in script.RESULTS.glob("lstm*-paper/test.json")]
    expected = [[scores.difference.value for scores in result.by_length] for result in results]
    with figure(tmp_path / "a.png", 1, 1, (4, 3)) as panels:
        script.draw_curves(panels[0, 0])
        drawn = [list(line.get_ydata()) for line in panels[0, 0].get_lines() if line.get_marker() != "None"]
    assert sorted(drawn) == sorted(expected)
