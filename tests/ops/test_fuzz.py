"""Random calls of the ops, and that the fuzzer finds faults; ``fuzz.py`` makes and checks the calls."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import Backend, nondeterministic, queues, stratification, superposition
from tests.conftest import REPOSITORY
from tests.ops import fuzz

CALLS = 400
HOSTILE_CALLS = 10_000


def test_random_calls() -> None:
    endings, failures = fuzz.run(range(CALLS))
    assert not failures, "\n".join(failures)
    assert min(endings.values()) > CALLS // 5


@pytest.mark.hostile
def test_many_random_calls() -> None:
    """In a process of its own, which a crash would end."""
    command = [sys.executable, "-m", "tests.ops.fuzz", "--calls", str(HOSTILE_CALLS)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr[-1000:]


def test_a_seed_makes_the_same_call_again() -> None:
    for seed in range(20):
        one, other = fuzz.make(seed), fuzz.make(seed)
        assert str(one) == str(other)
        for name, x in one.leaves.items():
            assert torch.equal(x, other.leaves[name])


def slightly_wrong(stack: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda *inputs, **options: stack(*inputs, **options) * (1 + 1e-4)


def wrong_gradient(stack: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Right readings; their gradients are too large by a ten-thousandth."""

    def broken(*inputs: Tensor, **options: bool) -> Tensor:
        readings = stack(*inputs, **options)
        return readings + 1e-4 * (readings - readings.detach())

    return broken


def nan(stack: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda *inputs, **options: stack(*inputs, **options) + torch.nan


def unclear(stack: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def broken(*inputs: Tensor, **options: bool) -> Tensor:
        raise RuntimeError("bad shape")

    return broken


@pytest.mark.parametrize(
    ("stack", "fault"),
    [(superposition, slightly_wrong), (stratification, wrong_gradient), (nondeterministic, nan), (queues, unclear)],
    ids=["superposition", "stratification", "nondeterministic", "queues"],
)
def test_a_broken_backend_is_found(
    stack: object, fault: Callable[..., Callable[..., Tensor]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within the calls of CI, and the line that is printed makes the same failing call again."""
    backends: dict[str, Backend] = stack.BACKENDS  # type: ignore[attr-defined]
    monkeypatch.setitem(backends, "pytorch", Backend("pytorch", fault(backends["pytorch"].compute)))
    for seed in range(CALLS):
        call = fuzz.make(seed)
        if fuzz.name_of(call) in vars(stack) and call.backend == "pytorch" and not call.steps and not call.fault:
            _, failures = fuzz.run([seed])
            if failures:
                break
    (line,) = failures
    again = re.match(r"python -m tests\.ops\.fuzz (\d+) ", line)
    assert again is not None
    assert fuzz.run([int(again[1])])[1] == [line]


def test_a_missing_check_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairseq_stack.ops._arguments.Sizes._check_like_first", lambda *_: None)
    assert any(fuzz.run([seed])[1] for seed in range(CALLS))
