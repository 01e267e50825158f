"""Whichever of fairseq and the plugin is imported first, the architectures are known afterwards."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CHECK = """
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.tasks import TASK_REGISTRY
assert "stack_transformer_nd_small" in ARCH_MODEL_REGISTRY
assert "pushdown_transformer_lm_dyck" in ARCH_MODEL_REGISTRY
assert {"prompt_classification", "pushdown_language_modeling", "stack_translation"} <= TASK_REGISTRY.keys()
from fairseq.optim.lr_scheduler import LR_SCHEDULER_REGISTRY
assert "validation_plateau" in LR_SCHEDULER_REGISTRY
from fairseq.criterions import CRITERION_REGISTRY
assert {"classification_cross_entropy", "pushdown_cross_entropy", "torch_cross_entropy"} <= CRITERION_REGISTRY.keys()
"""

ORDERS = {
    "plugin-first": "import fairseq_stack.ops, sys; assert 'fairseq' not in sys.modules; import fairseq",
    "fairseq-first": "import fairseq, fairseq_stack.ops",
    "criterions-first": "import fairseq_stack.criterions",
    "hub-first": "import fairseq_stack.hub.interface",
}


# What fairseq imports, which takes longer than fairseq itself, is imported once. Then each order is tried in a fork.
EACH_IN_A_FORK = """
import os, sys
import hydra, sacrebleu, sklearn, tensorboardX, torch
assert not {"fairseq", "fairseq_stack"} & set(sys.modules)
for program in sys.argv[1:]:
    if os.fork() == 0:
        exec(program, {"__name__": "__main__"})
        sys.exit()
    if os.wait()[1] != 0:
        sys.exit(program)
"""


def run(program: str, *arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore", "-c", program, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_architectures_are_known() -> None:
    result = run(EACH_IN_A_FORK, *(f"{imports}\n{CHECK}" for imports in ORDERS.values()))
    assert result.returncode == 0, result.stderr


def test_a_fairseq_that_is_not_supported_can_still_be_imported(tmp_path: Path) -> None:
    (tmp_path / "fairseq").mkdir()
    (tmp_path / "fairseq" / "__init__.py").write_text('__version__ = "1.0.0a0"\nimport fairseq.model_parallel\n')
    (tmp_path / "fairseq" / "model_parallel.py").touch()
    result = run("import fairseq_stack.ops, fairseq; print(fairseq.__version__)", folder=tmp_path)
    assert result.stdout.strip() == "1.0.0a0"
    assert "is not registered with fairseq" in result.stderr
    assert "needs fairseq 0.12.3, got version 1.0.0a0" in result.stderr
