"""The training steps of scripts/benchmark.py."""

from __future__ import annotations

import pytest
import torch

from scripts.benchmark.timing import Timer
from scripts.benchmark.training import HALF, PRECISIONS, WORKLOADS, Training, tiny


@pytest.mark.parametrize("precision", PRECISIONS)
def test_training_steps_in_any_precision(precision: str) -> None:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if precision == "fp16" and device.type == "cpu":
        pytest.skip("no CUDA device")
    workload = tiny(next(workload for workload in WORKLOADS if workload.name == "cfl"))
    training = Training(workload, "sup", Timer(device), precision)
    assert [str(case) for case in training.stacks()] == ["sup (2, 5, 32)"]
    before = [parameter.clone() for parameter in training.model.parameters()]
    assert min(training.step()) > 0
    assert {x.dtype for x in before} == {HALF.get(precision, torch.float32)}
    assert any(not torch.equal(x, y) for x, y in zip(before, training.model.parameters(), strict=True))
