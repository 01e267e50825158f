"""What the interpreter accepts may be an error for Triton's compiler, which needs no GPU."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY
from tests.ops.gpus import DEVICE

KERNELS = {
    "nondeterministic": (
        *("far_pops", "near_cell", "forward_weights", "reading_weights"),
        *("forward_derivatives", "far_outer", "near_outer", "log_weight_gradients"),
    ),
    "superposition": ("walk", "walk_back"),
}


@pytest.mark.triton
def test_the_trial_runs() -> None:
    importlib.import_module("fairseq_stack.ops._triton.trial").run_a_kernel(DEVICE)


@pytest.mark.triton
@pytest.mark.skipif(sys.platform != "linux", reason="Triton's compiler is for Linux")
def test_the_kernels_can_be_compiled_for_a_gpu() -> None:
    environment = os.environ | {"TRITON_INTERPRET": "0", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "tests.ops.compile_for_gpu"]
    actual = subprocess.run(command, env=environment, cwd=REPOSITORY, capture_output=True, text=True)
    assert actual.returncode == 0, actual.stderr[-3000:]
    assert set(actual.stdout.split()) == {f"{stack}.{name}" for stack, names in KERNELS.items() for name in names}
