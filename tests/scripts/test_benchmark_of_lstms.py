"""The parts of scripts/benchmark.py that measure stack LSTMs, neural stacks and limited memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts.benchmark import command
from scripts.benchmark.command import main
from scripts.benchmark.long_sequences import LongSequence
from scripts.benchmark.networks import NETWORKS
from scripts.benchmark.recurrent import RECURRENT


def test_stack_lstms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(command, "RECURRENT", RECURRENT[:5])
    path = tmp_path / "figures.json"
    assert main(["--quick", "--only", "lstm", "--json", str(path)]) == 0
    assert "## Training stack LSTMs, beside a loop over nn.LSTMCell" in capsys.readouterr().out.splitlines()
    rows = json.loads(path.read_text())["recurrent"]
    assert [row["stacks"] for row in rows] == ["none", "sup-10", "strat-10", "ns-2-3", "nd-2-3-5"]
    for row in rows:
        assert row["times_cells"] == pytest.approx(row["total_ms"] / row["cells_ms"])
        assert row["steps_times_cells"] == pytest.approx(row["steps_ms"] / row["cells_ms"])
        assert row["total_ms"] == pytest.approx(row["forward_ms"] + row["backward_ms"]) and row["error"] < 2e-5


def test_neural_stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(command, "NETWORKS", NETWORKS[:4])
    path = tmp_path / "figures.json"
    assert main(["--quick", "--only", "neural", "--json", str(path)]) == 0
    assert "## Training neural stacks, at once and step by step" in capsys.readouterr().out.splitlines()
    rows = json.loads(path.read_text())["networks"]
    assert [row["controller"] for row in rows] == ["linear", "linear", "rnn", "gru"]
    for row in rows:
        assert row["steps_times_own"] == pytest.approx(row["steps_ms"] / row["total_ms"])
        assert row["total_ms"] == pytest.approx(row["forward_ms"] + row["backward_ms"]) and row["error"] < 2e-5


def test_long_sequences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    cases = LongSequence(20, None), LongSequence(40, 5), LongSequence(9, 2, "sup"), LongSequence(9, None, "strat")
    monkeypatch.setattr(command, "LONG_SEQUENCES", cases)
    path = tmp_path / "figures.json"
    assert main(["--only", "window", "--repeats", "1", "--json", str(path)]) == 0
    assert "\n## Long sequences" in capsys.readouterr().out
    unlimited, limited, superposition, stratification = json.loads(path.read_text())["long_sequences"]
    assert (unlimited["window"], limited["window"], unlimited["times_unlimited"]) == (None, 5, 1)
    assert limited["total_ms"] > 0 <= limited["extra_megabytes"] and limited["error"] < 2e-5
    assert superposition["times_unlimited"] == stratification["times_unlimited"] == 1
    assert (superposition["stack"], superposition["window"], stratification["window"]) == ("sup", 2, None)
