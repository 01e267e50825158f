"""The workflow on Pushdown Layers, on tiny corpora."""

from __future__ import annotations

import gzip
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.commands.running import Server
from tests.scripts.test_experiments import experiment, parse_train

TREES = ["(S (NP (DT the) (NN dog)) (VP (VBZ sleeps)) (. .))", "(S (NP (NNS dogs)) (VP (VBP bark) (ADVP (RB now))))"]


def run_murty(server: Server, out: Path, *options: str, **settings: object) -> subprocess.CompletedProcess[str]:
    return experiment(server, "murty_2023", out, *options, **{"epochs": None, **settings})


def test_it_runs_once(tmp_path: Path, server: Server) -> None:
    """Models of both parts are trained, scored and tabulated, and nothing is done twice."""
    data = tmp_path / "my trees"
    data.mkdir()
    for number, split in enumerate(("train", "valid", "test")):
        text = "".join(f"{tree}\n" for tree in TREES * 4).encode()
        path = data / (f"{split}.txt" if number else f"{split}.txt.gz")
        path.write_bytes(text if number else gzip.compress(text))
    settings = {"data": data, "kinds": "base", "seeds": 1, "limit": 1, "updates": 2, "tree_updates": 2}
    done = run_murty(server, tmp_path / "out", **settings)
    assert done.returncode == 0, done.stdout + done.stderr
    brackets, trees = (
        (tmp_path / "out" / f"{part}-limit-1" / "updates-2" / "table-kinds-base-seeds-1.md").read_text(encoding="utf-8")
        for part in ("dyck", "trees")
    )
    share = r"\d+\.\d"
    last = r"test of depth, last of a string"
    assert re.search(rf"^\| {last} +\| +1 \| +{share} \| +{share} \|$", brackets, re.MULTILINE), brackets
    assert re.search(rf"^\| {last} \(beam of 10\) +\| +1 \| +{share} \| +{share} \|$", brackets, re.MULTILINE), brackets
    assert re.search(rf"^\| base +\| +[\d,]+ (\| +{share} ){{5}}\|$", trees, re.MULTILINE), trees
    assert re.findall(r"^`split:(\w+)\|", brackets + trees, re.MULTILINE) == [
        "test",
        "distance",
        *["depth"] * 2,
        "test",
    ]
    again = run_murty(server, tmp_path / "out", **settings)
    assert (again.returncode, again.stdout) == (0, ""), again.stderr


@pytest.mark.parametrize(
    ("settings", "jobs"),
    [
        ({}, {"train": 6, "evaluate_pushdown": 24, "prepare": 1, "table_dyck": 1, "results": 1}),
        ({"data": "/"}, {"train": 14, "evaluate_pushdown": 32, "prepare": 2, "table_dyck": 1, "table_trees": 1}),
        ({"data": "/", "parts": "trees", "kinds": "sup,nd"}, {"train": 4, "evaluate_pushdown": 4, "table_trees": 1}),
        (
            {"data": "/", "kinds": "zero-one-own,pushdown-own"},
            {"train": 4, "evaluate_pushdown": 10, "table_dyck": 1, "table_trees": 1},
        ),
    ],
    ids=["dyck", "both", "trees", "own-tapes"],
)
def test_parts(tmp_path: Path, settings: dict[str, str], jobs: dict[str, int], server: Server) -> None:
    plan = run_murty(server, tmp_path / "out", "--dry-run", "--printshellcmds", **settings)
    text = plan.stdout + plan.stderr
    counts = dict(re.findall(r"^(\w+) +(\d+)$", text, re.MULTILINE))
    assert {name: counts.get(name) for name in jobs} == {name: str(count) for name, count in jobs.items()}
    commands = set(re.findall(r"^(?:Shell command: +| +)(fairseq-train .*)$", text, re.MULTILINE))
    assert len(commands) == jobs["train"]
    for command in commands:
        parse_train(shlex.split(command.partition(" > ")[0])[2:])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"parts": "trees"}, "data=DATA is missing"),
        ({"parts": "dyck,words"}, "expected some of dyck,trees, got 'words'"),
        ({"kinds": "tf"}, "expected some of base,zero-one,depth,pushdown,sup,nd,zero-one-own,pushdown-own, got 'tf'"),
        ({"epochs": 3}, "epochs=...: expected one of beam, "),
    ],
    ids=["no-data", "part", "kind", "name"],
)
def test_mistakes(tmp_path: Path, settings: dict[str, object], message: str, server: Server) -> None:
    done = run_murty(server, tmp_path / "out", **settings)
    assert done.returncode == 1 and message in done.stderr
