"""scripts/publish_model.py leaves out of a checkpoint what says nothing about the model."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import torch

from tests.documents import REPOSITORY

MODEL = REPOSITORY / "examples/models/neural-stack-reversal"


def test_publishing(tmp_path: Path) -> None:
    """A published model that is trained on becomes the published model again."""
    shutil.copytree(MODEL, tmp_path / "trained")
    checkpoint = tmp_path / "trained/checkpoint_best.pt"
    state = torch.load(checkpoint, weights_only=True)
    expected = str(state)
    state["cfg"]["common"]["user_dir"] = "/home/user/fairseq_stack"
    state["cfg"]["checkpoint"]["save_dir"] = f"runs/{state['cfg']['checkpoint']['save_dir']}"
    state["last_optimizer_state"] = {"state": {0: {"step": 1}}}
    state["extra_state"]["metrics"] = {}
    torch.save(state, checkpoint)
    script = [sys.executable, "scripts/publish_model.py", str(tmp_path / "trained"), str(tmp_path / "published")]
    subprocess.run(script, cwd=REPOSITORY, check=True)
    assert str(torch.load(tmp_path / "published/checkpoint_best.pt", weights_only=True)) == expected
    names = {path.name for path in (tmp_path / "published").iterdir()}
    assert names == {path.name for path in MODEL.iterdir()} - {"README.md"}
