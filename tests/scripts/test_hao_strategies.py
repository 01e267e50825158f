"""The measures of how neural stacks are used, on strings whose strengths and vectors are known."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from fairseq_stack.inspection.neural_stack import StackRun
from tests.commands.running import Server
from tests.scripts.test_experiments import experiment

pytest.importorskip("matplotlib")


def run_of(inputs: str, pops: list[float], pushes: list[float], vectors: list[tuple[float, ...]]) -> StackRun:
    return StackRun(tuple(inputs), tuple(inputs), tuple(pops), tuple(pushes), tuple(vectors), tuple(vectors), None)


def test_reversal(script: ModuleType) -> None:
    """Two strings are averaged over their steps, not over their means."""
    runs = [
        run_of("0122", [0.1, 0.3, 0.9, 1.0], [0.8, 1.0, 0.0, 0.2], [(0.0,)] * 4),
        run_of("12", [0.5, 0.5], [0.6, 0.4], [(0.0,)] * 2),
    ]
    measured = {name: measure(runs) for name, measure in script.STRATEGIES["reversal-linear"].items()}
    assert measured == pytest.approx(
        {"push while reading": 0.8, "push while writing": 0.2, "pop while reading": 0.3, "pop while writing": 0.8}
    )


def test_excluded_symbols(script: ModuleType) -> None:
    runs = [run_of("0312444", [0.0] * 4 + [0.6] * 3, [0.9, 0.1, 0.7, 0.3, 0.0, 0.0, 0.0], [(0.0,)] * 7)]
    measures = script.STRATEGIES["reverse-deletion-linear"]
    assert [measure(runs) for measure in measures.values()] == pytest.approx([0.8, 0.2, 0.6])


@pytest.mark.parametrize(("informative", "expected"), [(True, 1.0), (False, 0.5)])
def test_parity(script: ModuleType, informative: bool, expected: float) -> None:
    """Vectors that depend on the parity tell it; vectors that depend on the position tell it half of the time."""
    even, odd = (0.9, 0.1), (0.1, 0.9)
    string = run_of("1011", [0.0] * 4, [1.0] * 4, [odd, odd, even, odd] if informative else [odd, even, even, even])
    others = run_of("11", [0.0] * 2, [1.0] * 2, [odd, even] if informative else [even, even])
    assert script.parity_from_vectors([string, others]) == expected


@pytest.mark.hostile
def test_the_workflow(tmp_path: Path, server: Server) -> None:
    experiment(server, "hao_strategies", tmp_path, networks="delayed-xor-linear", trials=2, limit=20)
    results = tmp_path / "hao-strategies" / "epochs-1-limit-20-trials-2-networks-delayed-xor-linear"
    assert "share of pushed vectors that tell the parity" in (results / "strategies.md").read_text()
    assert (results / "strategies.png").stat().st_size > 5000
