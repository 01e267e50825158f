"""scripts/experiments/syntax.smk on tiny corpora, with a few sentences in the place of BLiMP and SyntaxGym."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from tests.commands.running import Server
from tests.scripts.test_experiments import experiment, write_corpus

PAIRS = [("ein hund rennt", "hund ein rennt"), ("ein blauer hund rennt", "blauer ein hund rennt")]


def random_tree(draw: random.Random, depth: int = 0) -> str:
    if depth > 2 or draw.random() < 0.2:
        return f"(W {draw.choice(['ein', 'blauer', 'hund', 'rennt', 'schnell', '.'])})"
    return f"(P {random_tree(draw, depth + 1)} {random_tree(draw, depth + 1)})"


@pytest.fixture
def data(tmp_path: Path) -> dict[str, Path]:
    """The folders that the settings name."""
    folder, draw = tmp_path / "my data", random.Random(1)
    folder.mkdir()
    folders = {name: folder / name for name in ("trees", "blimp", "suites")}
    for path in folders.values():
        path.mkdir()
    for split, size in {"train": 60, "valid": 10, "test": 10}.items():
        trees = "".join(f"(S {random_tree(draw)})\n" for _ in range(size))
        (folders["trees"] / f"{split}.txt").write_text(trees)
    lines = [{"sentence_good": x, "sentence_bad": y, "field": "syntax", "linguistics_term": "order"} for x, y in PAIRS]
    (folders["blimp"] / "order.jsonl").write_text("\n".join(map(json.dumps, lines)))
    regions = [
        [{"region_number": number, "content": text} for number, text in enumerate((first, "rennt"), start=1)]
        for first in ("hund", ".")
    ]
    suite = {
        "meta": {"name": "cleft"},
        "region_meta": {"1": "first", "2": "second"},
        "predictions": [{"formula": "(2;%x%) < (2;%y%)"}],
        "items": [
            {
                "item_number": 1,
                "conditions": [{"condition_name": x, "regions": y} for x, y in zip("xy", regions, strict=True)],
            }
        ],
    }
    (folders["suites"] / "cleft.json").write_text(json.dumps(suite))
    return {"data": write_corpus(folder / "data", "ptb"), **folders}


def test_it_runs(data: dict[str, Path], tmp_path: Path, server: Server) -> None:
    pytest.importorskip("nltk")
    settings = {"kinds": "tf,pushdown", "seeds": 1, "tree_epochs": 1, "pieces": 40, "pairs": 1, "beam": 2}
    out = tmp_path / "out"
    first = experiment(server, "syntax", out, **data, **settings)
    assert first.returncode == 0, first.stdout + first.stderr
    row = r" +\| +[\d,]+ \| +\d+ \| +\d+ s \| +\d+\.\d\d \| +\d+\.\d\d \| +(0|100)\.00 \| +(0|100)\.00 \|$"
    for corpus, kinds in {"mikolov": ["tf"], "trees-40": ["tf", "pushdown"]}.items():
        folder = out / corpus / "epochs-1" / "pairs-1-beam-2"
        text = (folder / "syntax-kinds-tf+pushdown-seeds-1.md").read_text(encoding="utf-8")
        assert [kind for kind, *_ in re.findall(rf"^\| (\w+){row}", text, re.MULTILINE)] == kinds
        assert (folder / "syntax-kinds-tf+pushdown-seeds-1.png").read_bytes().startswith(b"\x89PNG")
        assert text.count("`BLiMP|") == text.count("`SyntaxGym|") == len(kinds)
        assert ("|beam:2|surprisals:conditional|" in text) == ("pushdown" in kinds)
    # The models of Mikolov's text are those of another workflow.
    plan = experiment(server, "ptb", out, "--dry-run", data=data["data"], kinds="tf,sup", seeds=1)
    trained = set(re.findall(r"^Job \d+: (\S+): training$", plan.stdout + plan.stderr, re.MULTILINE))
    assert trained == {"mikolov/epochs-1/sup-seed-1"}
