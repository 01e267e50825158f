"""Training on a CPU seeds only the CPU's generator, as fairseq does, and keeps the memory of tensors."""

from __future__ import annotations

import platform
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.trainer import Trainer

TRAINER: Any = SimpleNamespace(
    cfg=SimpleNamespace(common=SimpleNamespace(seed=7)), get_num_updates=lambda: 5, cuda=False, tpu=False
)


def test_the_generator_of_the_cpu_gets_the_same_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    Trainer._set_seed.__wrapped__(TRAINER)
    expected = torch.get_rng_state()
    assert torch.equal(expected, torch.manual_seed(12).get_state())
    torch.manual_seed(0)
    monkeypatch.setattr(torch, "manual_seed", None)  # which seeds GPUs, too
    Trainer._set_seed(TRAINER)
    assert torch.equal(torch.get_rng_state(), expected)


@pytest.mark.parametrize("device", ["cuda", "tpu"])
def test_other_devices_are_seeded_by_fairseq(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []
    monkeypatch.setattr("fairseq.utils.set_torch_seed", seeds.append)
    Trainer._set_seed(SimpleNamespace(**{**vars(TRAINER), device: True}))
    assert seeds == [12]


PAGES_OF_TENSORS = """
import resource, torch
from types import SimpleNamespace
from fairseq_stack.compat import trainer
from omegaconf import OmegaConf

def page_faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(10_000_000)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

before = min(page_faults() for _ in range(5))
common = {"cpu": True, "bf16": False, "fp16": False}
cfg = OmegaConf.create({"common": common, "checkpoint": {"best_checkpoint_metric": "loss"}})
trainer.init(lambda *args: None, SimpleNamespace(cuda=False), cfg, None, None, None)
print(before, min(page_faults() for _ in range(30)))  # the first ten may take new memory, as blocks are aligned
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc has mallopt")
def test_the_memory_of_large_tensors_is_reused() -> None:
    process = subprocess.run([sys.executable, "-c", PAGES_OF_TENSORS], capture_output=True, text=True, check=True)
    before, after = map(int, process.stdout.split())
    assert after < before / 100
