"""The notebook in examples/ runs from top to bottom, on less data and for one epoch, and is kept without outputs."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.commands.running import Server
from tests.documents import REPOSITORY, run_block

NOTEBOOK = "examples/inspect.ipynb"
TINY = (
    (re.compile(r"--train-size \d+ --valid-size \d+"), "--train-size 20 --valid-size 10"),
    (re.compile(r"--max-epoch \d+"), "--max-epoch 1"),
)
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
    for source in shell:
        run_block(source.removeprefix(SHELL), tmp_path, server, TINY)
    ending = server.run_program("\n".join([SHOW, *map(showing, python)]), tmp_path)
    assert ending.code == 0, ending.errors
    assert ending.printed.count(r"b'\x89PNG'") == "\n".join(python).count("Picture.of(") == 3
    assert re.search(r"^from the mark on: push \d\.\d\d, replace \d\.\d\d, pop \d\.\d\d$", ending.printed, re.MULTILINE)


def test_it_has_no_outputs() -> None:
    for cell in cells("code"):
        assert cell["outputs"] == [] and cell["execution_count"] is None
