"""scripts/experiments/syntax.smk on tiny corpora, with a few sentences in the place of BLiMP and SyntaxGym."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

from tests.commands.running import Server
from tests.end_to_end.conftest import random_tree
from tests.evaluation.test_blimp import line
from tests.evaluation.test_syntaxgym import item_of, suite_file
from tests.scripts.test_experiments import experiment, write_corpus

PAIRS = [("ein hund rennt", "hund ein rennt"), ("ein blauer hund rennt", "blauer ein hund rennt")]


@pytest.fixture
def data(tmp_path: Path) -> dict[str, Any]:
    """The folders that the settings name."""
    folder, draw = tmp_path / "my data", random.Random(1)
    folder.mkdir()
    folders = {name: folder / name for name in ("trees", "blimp", "suites")}
    for path in folders.values():
        path.mkdir()
    words = ["ein", "blauer", "hund", "rennt", "schnell", "."]
    for split, size in {"train": 60, "valid": 10, "test": 10}.items():
        trees = "".join(f"(S {random_tree(draw, words)})\n" for _ in range(size))
        (folders["trees"] / f"{split}.txt").write_text(trees)
    (folders["blimp"] / "order.jsonl").write_text("\n".join(line(good, bad=bad) for good, bad in PAIRS))
    items = [item_of(1, x=["hund", "rennt"], y=[".", "rennt"])]
    suite_file(folders["suites"] / "cleft.json", predictions=[{"formula": "(2;%x%) < (2;%y%)"}], items=items)
    return {"data": write_corpus(folder / "data", "ptb"), **folders}


@pytest.mark.hostile
def test_it_runs(data: dict[str, Any], tmp_path: Path, server: Server) -> None:
    pytest.importorskip("nltk")
    settings: dict[str, Any] = {"seeds": 1, "tree_epochs": 1, "pieces": 40, "pairs": 1, "beam": 2}
    out = tmp_path / "out"
    experiment(server, "syntax", out, kinds="tf,pushdown", **data, **settings)
    row = r" +\| +[\d,]+ \| +\d+ \| +\d+ s \| +\d+\.\d\d \| +\d+\.\d\d \| +(0|100)\.00 \| +(0|100)\.00 \|$"
    for corpus, shown in {"mikolov": ["tf"], "trees-40": ["tf", "pushdown"]}.items():
        path = out / corpus / "epochs-1" / "pairs-1-beam-2" / "syntax-kinds-tf+pushdown-seeds-1.md"
        text = path.read_text(encoding="utf-8")
        assert [kind for kind, *_ in re.findall(rf"^\| (\w+){row}", text, re.MULTILINE)] == shown
        assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
        assert text.count("`BLiMP|") == text.count("`SyntaxGym|") == len(shown)
        assert ("|beam:2|surprisals:conditional|" in text) == ("pushdown" in shown)
    # ptb.smk trains the same models of Mikolov's text.
    plan = experiment(server, "ptb", out, "--dry-run", data=data["data"], kinds="tf,sup", seeds=1)
    trained = set(re.findall(r"^Job \d+: (\S+): training$", plan.stdout + plan.stderr, re.MULTILINE))
    assert trained == {"mikolov/epochs-1/sup-seed-1"}
