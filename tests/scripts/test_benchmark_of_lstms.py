"""The parts of scripts/benchmark.py that measure stack LSTMs, neural stacks and limited memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairseq_stack.kinds import STRATIFICATION
from scripts.benchmark import long_sequences, networks, recurrent
from scripts.benchmark.cases import Case
from scripts.benchmark.command import main
from scripts.benchmark.long_sequences import automaton, superposition


def test_stack_lstms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(recurrent, "CASES", recurrent.CASES[:5])
    path = tmp_path / "figures.json"
    assert main(["--quick", "--only", "lstm", "--json", str(path)]) == 0
    assert "## Training stack LSTMs, compared with a loop over nn.LSTMCell" in capsys.readouterr().out.splitlines()
    rows = json.loads(path.read_text())["recurrent"]
    assert [row["stacks"] for row in rows] == ["none", "sup-10", "strat-10", "ns-2-3", "nd-2-3-5"]
    for row in rows:
        assert row["times_cells"] == pytest.approx(row["total_ms"] / row["cells_ms"])
        assert row["steps_times_cells"] == pytest.approx(row["steps_ms"] / row["cells_ms"])
        assert row["total_ms"] == pytest.approx(row["forward_ms"] + row["backward_ms"]) and row["error"] < 2e-5


def test_neural_stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(networks, "CASES", networks.CASES[:4])
    path = tmp_path / "figures.json"
    assert main(["--quick", "--only", "neural", "--json", str(path)]) == 0
    assert "## Training neural stacks, at once and step by step" in capsys.readouterr().out.splitlines()
    rows = json.loads(path.read_text())["networks"]
    assert [row["controller"] for row in rows] == ["linear", "linear", "rnn", "gru"]
    for row in rows:
        assert row["steps_times_own"] == pytest.approx(row["steps_ms"] / row["total_ms"])
        assert row["total_ms"] == pytest.approx(row["forward_ms"] + row["backward_ms"]) and row["error"] < 2e-5


def test_long_sequences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    cases = automaton(20, None), automaton(40, 5), superposition(9, 2), Case(STRATIFICATION, (1, 9, 64))
    monkeypatch.setattr(long_sequences, "CASES", cases)
    path = tmp_path / "figures.json"
    assert main(["--only", "window", "--repeats", "1", "--json", str(path)]) == 0
    assert "\n## Long sequences" in capsys.readouterr().out
    unlimited, limited, sup, strat = json.loads(path.read_text())["long_sequences"]
    assert (unlimited["window"], limited["window"], unlimited["times_unlimited"]) == (None, 5, 1)
    assert limited["total_ms"] > 0 <= limited["extra_megabytes"] and limited["error"] < 2e-5
    assert sup["times_unlimited"] == strat["times_unlimited"] == 1
    assert (sup["stack"], sup["window"], strat["window"]) == ("sup", 2, None)
