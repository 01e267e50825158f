"""Every command and snippet of docs/transduction.md runs as it stands, on less data and for one epoch."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.commands.running import Server
from tests.documents import REPOSITORY, Document, run_block

DOCUMENT = Document("docs/transduction.md")
# In tiny mode a command differs from the page's in these numbers only.
TINY = (
    (re.compile(r"--task reversal --seed 1"), "--task reversal --seed 1 --limit 10"),
    (re.compile(r"--max-epoch \d+"), "--max-epoch 1"),
)
EXPERIMENTS = [block for block in DOCUMENT.blocks("bash") if "scripts/" in block]


def test_the_commands_and_snippets_run(tmp_path: Path, server: Server) -> None:
    """One test, since they build on each other."""
    blocks = [block for block in DOCUMENT.blocks("bash") if block not in EXPERIMENTS]
    data, _, outputs, evaluation, *_ = (run_block(block, tmp_path, server, TINY) for block in blocks)
    assert "data/reversal/data-bin" in data
    assert len(re.findall(r"^H-\d+\t\S+\t[012]( [012])*$", outputs, re.MULTILINE)) == 10 + 1
    assert "task:reversal|split:test|strings:10|" in evaluation
    assert json.loads((tmp_path / "reversal.json").read_text())["kind"] == "evaluate-transduction"
    assert (tmp_path / "reversal.png").exists()
    assert (tmp_path / "checkpoints" / "own" / "checkpoint_best.pt").exists()
    (snippet,) = DOCUMENT.blocks("python")
    ending = server.run_program(snippet, tmp_path)
    assert ending.code == 0, ending.errors
    assert re.fullmatch(r"[012]( [012]){5}\n", ending.printed)


def test_the_experiment_exists() -> None:
    """Its own test runs it with these settings."""
    rows = json.loads((REPOSITORY / "scripts/experiments/hao_2018.json").read_text())
    _, of_one_row = EXPERIMENTS
    assert re.findall(r"rows=(\S+)", of_one_row)[0] in rows
