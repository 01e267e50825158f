"""The workflow on Pushdown Layers, on tiny corpora."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import pytest

from tests.commands.running import Server
from tests.scripts.test_experiments import experiment

TREES = ["(S (NP (DT the) (NN dog)) (VP (VBZ sleeps)) (. .))", "(S (NP (NNS dogs)) (VP (VBP bark) (ADVP (RB now))))"]


@pytest.mark.hostile
def test_it_runs(tmp_path: Path, server: Server) -> None:
    """Models of both parts are trained, scored and tabulated."""
    data = tmp_path / "my trees"
    data.mkdir()
    for number, split in enumerate(("train", "valid", "test")):
        text = "".join(f"{tree}\n" for tree in TREES * 4).encode()
        path = data / (f"{split}.txt" if number else f"{split}.txt.gz")
        path.write_bytes(text if number else gzip.compress(text))
    settings: dict[str, Any] = {"kinds": "base", "seeds": 1, "limit": 1, "updates": 2, "tree_updates": 2}
    experiment(server, "murty_2023", tmp_path / "out", epochs=None, data=data, **settings)
    brackets, trees = (
        (tmp_path / "out" / f"{part}-limit-1" / "updates-2" / "table-kinds-base-seeds-1.md").read_text(encoding="utf-8")
        for part in ("dyck", "trees")
    )
    share = r"\d+\.\d"
    last = r"test of depth, last of a string"
    assert re.search(rf"^\| {last} +\| +1 \| +{share} \| +{share} \|$", brackets, re.MULTILINE), brackets
    assert re.search(rf"^\| {last} \(beam of 10\) +\| +1 \| +{share} \| +{share} \|$", brackets, re.MULTILINE), brackets
    assert re.search(rf"^\| base +\| +[\d,]+ (\| +{share} ){{5}}\|$", trees, re.MULTILINE), trees
    splits = ["test", "distance", "depth", "depth", "test"]
    assert re.findall(r"^`split:(\w+)\|", brackets + trees, re.MULTILINE) == splits
