"""Files of another corpus, and damaged ones, are named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.manifest import read_manifest
from fairseq_stack.evaluation.prompts import read_prompts


@pytest.mark.parametrize("content", ["{", "[1]", '{"task": "reverse", "blank": null}', '{"labels": [], "task": "x"}'])
def test_task_files_of_other_corpora(content: str, tmp_path: Path) -> None:
    (tmp_path / "task.json").write_text(content)
    problem = f"{tmp_path / 'task.json'} is not a file of fairseq-stack prepare classification: "
    with pytest.raises(UserError, match=f"^{re.escape(problem)}"):
        read_prompts(tmp_path)


@pytest.mark.parametrize("content", ["{", "[1]"])
def test_damaged_manifests(content: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(UserError, match=f"^{re.escape(str(tmp_path))}/manifest.json is not a manifest of"):
        read_manifest(tmp_path)
