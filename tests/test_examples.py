"""What is in examples/: the notebook runs from top to bottom, and the trained models have the scores on their cards."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_stack.hub.paths import CHECKPOINTS
from tests.commands.running import Server
from tests.documents import REPOSITORY, Document, run_block

EXAMPLES = REPOSITORY / "examples"
NOTEBOOK = "examples/inspect.ipynb"
CARDS = [Document(str(path.relative_to(REPOSITORY))) for path in sorted(EXAMPLES.glob("models/*/README.md"))]
each_model = pytest.mark.parametrize("card", CARDS, ids=lambda card: card.path.parent.name)
QUICK = ("pushdown-dyck", "neural-stack-reversal", "tf-nd-nested-translation", "lstm-nd-unmarked-reversal")
"""One model for each command that scores them."""
NUMBER = re.compile(r"\d+\.\d+")
SHELL = "%%bash\n"
# A notebook shows what a cell returns: here the beginning of a picture.
SHOW = "def _show(returned):\n    print(repr(returned._repr_png_()[:4]))\n"


def cells(kind: str) -> list[dict[str, Any]]:
    content = json.loads((REPOSITORY / NOTEBOOK).read_text(encoding="utf-8"))
    assert content["nbformat"] == 4
    return [cell for cell in content["cells"] if cell["cell_type"] == kind]


def sources(kind: str) -> list[str]:
    return ["".join(cell["source"]) for cell in cells(kind)]


def showing(source: str) -> str:
    """A cell in which what it returns is shown."""
    tree = ast.parse(source)
    last = tree.body[-1]
    if isinstance(last, ast.Expr) and ast.unparse(last).startswith("Picture."):
        last.value = ast.Call(ast.Name("_show"), [last.value], [])
    return ast.unparse(tree)


def test_the_cells_run(tmp_path: Path, server: Server) -> None:
    pytest.importorskip("matplotlib")
    code = sources("code")
    shell = [source for source in code if source.startswith(SHELL)]
    python = code[len(shell) :]
    assert code[: len(shell)] == shell, "cells in Python come after those of the shell"
    (tmp_path / "models").symlink_to(EXAMPLES / "models")
    for source in shell:
        run_block(source.removeprefix(SHELL), tmp_path, server)
    ending = server.run_program("\n".join([SHOW, *map(showing, python)]), tmp_path)
    assert (ending.code, ending.errors) == (0, "")
    assert ending.printed.count(r"b'\x89PNG'") == "\n".join(python).count("Picture.of(") == 3
    assert re.search(
        r"^from the marker on: push \d\.\d\d, replace \d\.\d\d, pop \d\.\d\d$", ending.printed, re.MULTILINE
    )


@pytest.mark.parametrize(
    "card",
    [
        pytest.param(x, marks=[] if x.path.parent.name in QUICK else pytest.mark.hostile, id=x.path.parent.name)
        for x in CARDS
    ],
)
def test_a_model_has_the_scores_on_its_card(card: Document, tmp_path: Path, server: Server) -> None:
    """On a sample of its test set."""
    (tmp_path / "examples").symlink_to(EXAMPLES)
    (commands,) = [block for block in card.blocks("bash") if "data/short" in block]
    *_, expected = card.blocks("text")
    printed = run_block(commands, tmp_path, server).splitlines()
    missing = [line for line in expected.splitlines() if not any(agree(line, other) for other in printed)]
    assert missing == [], printed


def agree(line: str, other: str) -> bool:
    """Whether lines are equal, apart from one unit in the last digit of a number: processors round differently."""
    numbers, others = NUMBER.findall(line), NUMBER.findall(other)
    same_words = NUMBER.sub("", line).split() == NUMBER.sub("", other).split()
    return same_words and all(
        abs(float(a) - float(b)) < 1.5 * 10.0 ** -len(a.partition(".")[2]) for a, b in zip(numbers, others, strict=True)
    )


@each_model
def test_a_model_is_without_what_training_needs(card: Document) -> None:
    state = torch.load(card.path.parent / CHECKPOINTS[0], weights_only=True)
    assert "last_optimizer_state" not in state
    assert "/" not in str(state["cfg"])


def test_the_models_are_small_and_listed() -> None:
    folders = {card.path.parent.name for card in CARDS}
    assert folders == {path.parent.name for path in EXAMPLES.glob("models/*/checkpoint_best.pt")}
    assert folders == set(re.findall(r"\((\S+)/README.md\)", Document("examples/models/README.md").text))
    assert sum(path.stat().st_size for path in EXAMPLES.rglob("*") if path.is_file()) < 4e6
