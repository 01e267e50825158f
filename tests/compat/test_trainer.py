"""Training on a CPU seeds the CPU's generator as fairseq does, and no other."""

from __future__ import annotations

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
