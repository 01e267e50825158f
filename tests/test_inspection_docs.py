"""Every command and snippet of docs/inspection.md runs as it stands, on less data and for one epoch."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.commands.running import Server
from tests.documents import Document, run_block

DOCUMENT = Document("docs/inspection.md")
# In tiny mode a command differs from the page's in these numbers only.
TINY = (
    (re.compile(r"--train-size \d+ --valid-size \d+"), "--train-size 20 --valid-size 10"),
    (re.compile(r"--test-per-length \d+"), "--test-per-length 1"),
    (re.compile(r"--max-epoch \d+"), "--max-epoch 1"),
    (re.compile(r'"train": 4000, "valid": 200, "test": 200'), '"train": 50, "valid": 10, "test": 10'),
)
NAMES = ("runs", "operations", "sup", "barcode", "readings", "tape", "tree", "verb")
IMAGES = {f"{name}.png": f"inspect-{name}.png" for name in NAMES}


def test_the_commands_and_snippets_run(tmp_path: Path, server: Server) -> None:
    """One test, since they build on each other."""
    for block in DOCUMENT.blocks("bash"):
        run_block(block, tmp_path, server, TINY)
    assert {path.name for path in tmp_path.glob("*.png")} == IMAGES.keys()
    (stack,) = json.loads((tmp_path / "numbers.json").read_text())
    assert stack["inputs"] == ["0", "1", "1", "0", "#", "0", "1"]
    means = [line.split("\t")[1] for line in (tmp_path / "means.tsv").read_text().splitlines()]
    assert means[:2] == ["symbol", ""] and set(means[2:]) == {"0", "1", "#"}
    assert (tmp_path / "transitions.tsv").exists() and (tmp_path / "contents.gv").exists()
    assert len((tmp_path / "parses.txt").read_text().splitlines()) == 3
    assert json.loads((tmp_path / "parse.json").read_text())["tokens"][:3] == ["ROOT", "the", "dogs"]
    ending = server.run_program("\n".join(DOCUMENT.blocks("python")), tmp_path)
    assert ending.code == 0, ending.errors
    assert len(re.findall(r"^\d+\.\d%( (push|replace|pop)){9}$", ending.printed, re.MULTILINE)) == 2
    assert len(re.findall(r"^0\.\d{3} .*sees.*$", ending.printed, re.MULTILINE)) == 2
