"""Two processes train one model on processors, with fairseq's own distributed training."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path
from typing import Any

import torch

from tests.commands.running import Server
from tests.end_to_end.conftest import Corpora
from tests.end_to_end.fairseq_commands import TRANSLATION, USER_DIR

PROCESSES = 2
NO_DROPOUT = ["--dropout", 0, "--attention-dropout", 0, "--activation-dropout", 0]
TRAINING = [
    *("--optimizer", "adam", "--lr", 0.01, "--batch-size", 5, "--max-epoch", 2, "--seed", 3, "--num-workers", 0),
    *("--no-epoch-checkpoints", "--no-progress-bar", "--cpu", "--user-dir", USER_DIR),
    *("--validate-interval-sentences", 20),
]


def train(server: Server, command: list[Any]) -> subprocess.Popen[str]:
    words = ["fairseq-train", *map(str, command)]
    return subprocess.Popen(
        words, env=server.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def parameters(folder: Path) -> dict[str, torch.Tensor]:
    model: dict[str, torch.Tensor] = torch.load(folder / "checkpoint_last.pt", weights_only=False)["model"]
    return model


def test_two_processes_train_as_one(corpora: Corpora, server: Server, tmp_path: Path) -> None:
    """Each update sums the gradients of a batch a process; one process sums as many with --update-freq.

    Both validate, and save a checkpoint, when all processes together have seen so many sentences.
    """
    command = [corpora.translation, *TRANSLATION, *TRAINING, *NO_DROPOUT]
    one = train(server, [*command, "--update-freq", PROCESSES, "--save-dir", tmp_path / "one"])
    together = [
        *("--distributed-world-size", PROCESSES, "--distributed-init-method", f"tcp://127.0.0.1:{free_port()}"),
        *("--distributed-no-spawn", "--distributed-backend", "gloo", "--ddp-backend", "legacy_ddp"),
        *("--save-dir", tmp_path / "two"),
    ]
    two = [train(server, [*command, *together, "--distributed-rank", rank]) for rank in range(PROCESSES)]
    outputs = [process.communicate()[0] for process in (one, *two)]
    assert [process.returncode for process in (one, *two)] == [0] * (1 + PROCESSES), "\n".join(outputs)
    assert any("training on 2 devices" in output for output in outputs[1:])
    assert (tmp_path / "one" / "checkpoint_1_2.pt").exists()
    assert sorted(path.name for path in (tmp_path / "two").iterdir()) == sorted(
        path.name for path in (tmp_path / "one").iterdir()
    )
    trained_by_two = parameters(tmp_path / "two")
    for name, expected in parameters(tmp_path / "one").items():
        torch.testing.assert_close(trained_by_two[name], expected, rtol=1e-3, atol=1e-5, msg=name)
