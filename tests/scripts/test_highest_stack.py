"""scripts/experiments/highest_stack.py: what the stack does with strings w w^R."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch

from fairseq_stack.ops import transition_posterior
from tests.commands.running import REPOSITORY


def test_the_entropy_of_runs_of_one_step(script: ModuleType) -> None:
    """Each run takes another transition, so runs and the posterior of transitions have the same entropy."""
    shapes = (1, 1, 2, 3, 2, 3), (1, 1, 2, 3, 2, 3), (1, 1, 2, 3, 2)
    weights = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
    weights[1][..., 0] = -torch.inf
    log_partition = torch.logsumexp(torch.cat([x[0, 0, 0, 0].flatten() for x in weights[:2]]), 0).item()
    posterior = transition_posterior(*weights)
    p = torch.cat([x.flatten() for x in posterior])
    p = p[p > 0]
    stack = SimpleNamespace(posterior=posterior, log_weights=weights, log_partition=log_partition)
    assert script.entropy(stack) == pytest.approx(-(p * p.log()).sum().item(), rel=1e-9)


def test_a_model_that_reverses(script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    strings = tmp_path / "strings.txt"
    strings.write_text("0 1 1 0 0 1 1 0 1 0 1 1 1 0 1 1 1 1 1 0 0 1 1 1 1 1 0 1 1 1 0 1 0 1 1 0 0 1 1 0\n" * 2)
    model = REPOSITORY / "examples" / "models" / "lstm-nd-unmarked-reversal"
    script.main(str(strings), str(model))
    name, near, _, entropy, push, pop = capsys.readouterr().out.splitlines()[1].split("\t")
    assert (name, near) == (str(model), "2 of 2")
    assert 0 < float(entropy) < 1
    assert min(float(push), float(pop)) > 0.5
