"""The training steps of scripts/benchmark.py."""

from __future__ import annotations

import pytest
import torch

from scripts.benchmark.timing import Timer
from scripts.benchmark.training import HALF, PRECISIONS, WORKLOADS, Training, tiny

BY_NAME = {workload.name: workload for workload in WORKLOADS}


@pytest.mark.parametrize("precision", PRECISIONS)
def test_training_steps_in_any_precision(precision: str) -> None:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if precision == "fp16" and device.type == "cpu":
        pytest.skip("no CUDA device")
    workload = tiny(BY_NAME["cfl"])
    training = Training(workload, "stack_transformer_lm_sup_cfl", Timer(device), precision)
    assert [str(case) for case in training.stacks()] == ["sup (2, 5, 32)"]
    before = [parameter.clone() for parameter in training.model.parameters()]
    assert min(training.step()) > 0
    assert {x.dtype for x in before} == {HALF.get(precision, torch.float32)}
    assert any(not torch.equal(x, y) for x, y in zip(before, training.model.parameters(), strict=True))


def test_models_of_equal_parameters() -> None:
    workload = BY_NAME["equal parameters"]
    training = Training(tiny(workload), "delta-2", Timer(torch.device("cpu")), "float32")
    assert [str(case) for case in training.stacks()] == ["delta (2, 5, 2, 15, 15)"]
    assert training.parameters == 43_099
    assert len(workload.models) == 12 and next(iter(workload.models)) == "tf"
