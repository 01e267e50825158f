"""The commands of docs/pushdown.md run as they stand, on less data."""

from __future__ import annotations

import re
from pathlib import Path

from fairseq_stack import cli
from fairseq_stack.evaluation.pushdown import read_pushdown_result
from tests.commands.running import Server
from tests.documents import Document, run_block

DOCUMENT = Document("docs/pushdown.md")
TREE = "(S (NP (DT The) (NN dog)) (VP (VBZ sleeps)) (. .))"
SMALL = (
    "--bracket-types 2 --train-size 40 --valid-size 5 --test-size 3 --distance-size 3 --depth-to 15 --depth-strings 1"
)
TINY = (
    (re.compile(r"--own-tapes-after \d+"), "--own-tapes-after 1"),
    (re.compile(r"--max-epoch \d+|--max-update \d+"), "--max-update 2"),
    (re.compile(r"--decoder-embed-dim \d+ --decoder-ffn-embed-dim \d+"), ""),
    (re.compile(r"--stack-layers 4xpushdown"), "--stack-layers pushdown --decoder-embed-dim 16"),
    (re.compile(r"--train-size \d+"), SMALL),
)


def test_from_trees_to_brackets(tmp_path: Path, server: Server) -> None:
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.txt").write_text(f"{TREE}\n" * 8, encoding="utf-8")
    trees, training, own_tapes, evaluation, brackets = DOCUMENT.blocks("bash")
    for block in (trees, training, own_tapes):
        run_block(block, tmp_path, server, TINY)
    printed = run_block(evaluation, tmp_path, server, TINY)
    result = read_pushdown_result(tmp_path / "trees.json")
    assert result.parses is not None and result.parses.f1_without_punctuation is not None
    share = 100 * result.parses.f1_without_punctuation.value
    assert re.search(rf"^\| F1 without punctuation +\| +{share:.2f} % \|", printed, re.MULTILINE), printed
    printed = run_block(brackets, tmp_path, server, TINY)
    assert len(re.findall(r"^\| closing brackets +\| number \| gold parses \|", printed, re.MULTILINE)) == 3


def test_shapes_of_trees(tmp_path: Path) -> None:
    """What parsers print is the same tree in each of the shapes."""
    (shapes,) = DOCUMENT.blocks("")
    (tmp_path / "trees").write_text(shapes, encoding="utf-8")
    options = [word for split in ("train", "valid", "test") for word in (f"--{split}", str(tmp_path / "trees"))]
    assert cli.main(["prepare", "treebank", str(tmp_path / "out"), *options, "--no-binarise"]) == 0
    assert (tmp_path / "out" / "text" / "train.attach").read_text() == "1 1 3 2\n" * 3
    assert (tmp_path / "out" / "text" / "train.words").read_text() == "The dog sleeps .\n" * 3
