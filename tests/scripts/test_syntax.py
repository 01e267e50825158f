"""scripts/experiments/syntax.smk on tiny corpora, with a few sentences in the place of BLiMP and SyntaxGym."""

from __future__ import annotations

import json
import random
import re
import shlex
from pathlib import Path

import pytest

from tests.commands.running import Server
from tests.scripts.test_experiments import experiment, parse_train, times, write_corpus

PAIRS = [("ein hund rennt", "hund ein rennt"), ("ein blauer hund rennt", "blauer ein hund rennt")]


def random_tree(draw: random.Random, depth: int = 0) -> str:
    if depth > 2 or draw.random() < 0.2:
        return f"(W {draw.choice(['ein', 'blauer', 'hund', 'rennt', 'schnell', '.'])})"
    return f"(P {random_tree(draw, depth + 1)} {random_tree(draw, depth + 1)})"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folders that the settings name."""
    folder, draw = tmp_path_factory.mktemp("syntax") / "my data", random.Random(1)
    folder.mkdir()
    found = {name: folder / name for name in ("trees", "blimp", "suites")}
    for path in found.values():
        path.mkdir()
    for split, size in {"train": 60, "valid": 10, "test": 10}.items():
        trees = "".join(f"(S {random_tree(draw)})\n" for _ in range(size))
        (found["trees"] / f"{split}.txt").write_text(trees)
    lines = [{"sentence_good": x, "sentence_bad": y, "field": "syntax", "linguistics_term": "order"} for x, y in PAIRS]
    (found["blimp"] / "order.jsonl").write_text("\n".join(map(json.dumps, lines)))
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
    (found["suites"] / "cleft.json").write_text(json.dumps(suite))
    return {"data": write_corpus(folder / "data", "ptb"), **found}


def test_runs_once(data: dict[str, Path], tmp_path: Path, server: Server) -> None:
    pytest.importorskip("nltk")
    settings = {"kinds": "tf,pushdown", "seeds": 1, "tree_epochs": 1, "pieces": 40, "pairs": 1, "beam": 2}
    first = experiment(server, "syntax", tmp_path, **data, **settings)
    assert first.returncode == 0, first.stdout + first.stderr
    row = r" +\| +[\d,]+ \| +\d+ \| +\d+ s \| +\d+\.\d\d \| +\d+\.\d\d \| +(0|100)\.00 \| +(0|100)\.00 \|$"
    for corpus, kinds in {"mikolov": ["tf"], "trees-40": ["tf", "pushdown"]}.items():
        folder = tmp_path / corpus / "epochs-1" / "pairs-1-beam-2"
        text = (folder / "syntax-kinds-tf+pushdown-seeds-1.md").read_text(encoding="utf-8")
        assert [kind for kind, *_ in re.findall(rf"^\| (\w+){row}", text, re.MULTILINE)] == kinds
        assert (folder / "syntax-kinds-tf+pushdown-seeds-1.png").read_bytes().startswith(b"\x89PNG")
        assert text.count("`BLiMP|") == text.count("`SyntaxGym|") == len(kinds)
        assert ("|beam:2|surprisals:conditional|" in text) == ("pushdown" in kinds)
    written = times(tmp_path)
    again = experiment(server, "syntax", tmp_path, **data, **settings)
    assert (again.returncode, again.stdout) == (0, ""), again.stderr
    # The models of Mikolov's text are those of another workflow.
    plan = experiment(server, "ptb", tmp_path, "--dry-run", data=data["data"], kinds="tf,sup", seeds=1)
    trained = set(re.findall(r"^Job \d+: (\S+): training$", plan.stdout + plan.stderr, re.MULTILINE))
    assert trained == {"mikolov/epochs-1/sup-seed-1"}
    assert {path: time for path, time in times(tmp_path).items() if path in written and path.suffix == ".pt"} == {
        path: time for path, time in written.items() if path.suffix == ".pt"
    }


def test_the_experiment_is_planned(data: dict[str, Path], tmp_path: Path, server: Server) -> None:
    """All models, and options that fairseq-train knows."""
    plan = experiment(server, "syntax", tmp_path, "--dry-run", "--printshellcmds", **data)
    assert plan.returncode == 0, plan.stderr
    text = plan.stdout + plan.stderr
    counts = dict(re.findall(r"^(\w+) +(\d+)$", text, re.MULTILINE))
    assert counts == {
        **{"prepare": "2", "train": "14", "surprisals": "28", "blimp": "14", "suites": "14"},
        **{"table": "2", "figure": "2", "syntax": "1", "total": "77"},
    }
    commands = set(re.findall(r"^(?:Shell command: +| +)fairseq-train (.*) > ", text, re.MULTILINE))
    assert len(commands) == 14
    for command in sorted(commands)[::4]:
        parse_train(shlex.split(command)[1:])


def test_a_missing_setting(data: dict[str, Path], tmp_path: Path, server: Server) -> None:
    done = experiment(server, "syntax", tmp_path, **{name: path for name, path in data.items() if name != "trees"})
    assert done.returncode == 1
    assert "trees=TREES is missing: the folder with the trees, as an absolute path" in done.stderr
