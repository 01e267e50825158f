"""The workflows on a cluster: each training run is a job of Slurm. Skipped where there is no Slurm."""

from __future__ import annotations

import getpass
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.commands.running import REPOSITORY, Server
from tests.scripts.test_experiments import write_corpus


@pytest.fixture
def slurm() -> None:
    """A Slurm that answers."""
    if shutil.which("sbatch") is None:
        pytest.skip("there is no Slurm: sbatch is not installed")
    if subprocess.run(["sinfo"], capture_output=True).returncode != 0:
        pytest.skip("there is no Slurm: sinfo finds no controller")


@pytest.mark.usefixtures("slurm")
def test_a_workflow_runs_on_slurm(tmp_path: Path, server: Server) -> None:
    """On a cluster without accounting, such as a single node."""
    data, out = write_corpus(tmp_path / "data", "ptb"), tmp_path / "out"
    folder = REPOSITORY / "scripts" / "experiments"
    here = ["--slurm-no-account", "--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "2"]
    settings = [f"data={data}", "kinds=sup", "epochs=1"]
    command = ["snakemake", "--snakefile", str(folder / "ptb.smk"), "--profile", str(folder / "profiles" / "slurm")]
    done = subprocess.run(
        [*command, "--directory", str(out), *here, "--config", *settings],
        capture_output=True,
        text=True,
        env={**server.environment(), "USER": getpass.getuser(), "CUDA_VISIBLE_DEVICES": ""},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    submitted = re.findall(r"submitted with SLURM jobid (\d+)", done.stdout + done.stderr)
    assert len(submitted) == 4, done.stderr  # prepare, train, and two of score; the table is written here
    (table,) = out.glob("*/epochs-1/table-kinds-sup.md")
    assert re.search(r"^\| sup +\|", table.read_text(encoding="utf-8"), re.MULTILINE)
