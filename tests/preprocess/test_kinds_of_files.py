"""A path that is not a file is reported as such, before anything waits for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fairseq_stack_preprocess.errors import PrepareError
from fairseq_stack_preprocess.mt.parallel_text import find_files
from fairseq_stack_preprocess.text.notation import read_grammar
from fairseq_stack_preprocess.text.streams import read_lines
from fairseq_stack_preprocess.trees.mikolov import find_files as find_mikolov_files
from fairseq_stack_preprocess.trees.treebank import Options
from fairseq_stack_preprocess.trees.treebank import find_files as find_tree_files

KINDS: dict[str, tuple[Callable[[Path], object], str]] = {
    "pipe": (os.mkfifo, "is a pipe, expected a file"),
    "folder": (Path.mkdir, "is a folder, expected a file"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "is a device, expected a file"),
    "dangling-link": (
        lambda path: path.symlink_to("nowhere"),
        "is a link to nowhere, which is missing, expected a file",
    ),
}


def read_one_side(path: Path) -> object:
    (path.parent / "a.de").write_text("x\n")
    return find_files(path.with_suffix(""), "de", path.suffix[1:])


def read_trees(path: Path) -> object:
    return find_tree_files(Options((path,), (path,), (path,)))


READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "side": ("a.en", read_one_side),
    "side-gz": ("a.gz", lambda path: list(read_lines(path))),
    "grammar": ("grammar.txt", read_grammar),
    "mikolov": ("ptb.train.txt", lambda path: find_mikolov_files(path.parent)),
    "trees": ("trees.txt", read_trees),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", READERS)
def test_what_is_not_a_file_is_named(reader: str, kind: str, tmp_path: Path) -> None:
    name, read = READERS[reader]
    make, message = KINDS[kind]
    make(tmp_path / name)
    if (reader, kind) == ("trees", "folder"):
        message = "the folder holds no .mrg file"  # a folder may be given
    with pytest.raises(PrepareError) as caught:
        read(tmp_path / name)
    assert f"{tmp_path / name}" in str(caught.value)
    assert message in str(caught.value)


def test_advice_to_keep_separators_only_where_that_can_be(tmp_path: Path) -> None:
    (tmp_path / "g").write_text("S -> 'a'\u2028\n")
    with pytest.raises(PrepareError, match=r"g, line 1: U\+2028, which .* the end of a line; remove it$"):
        read_grammar(tmp_path / "g")
    with pytest.raises(PrepareError, match=r"the end of a line; --keep-separators keeps it$"):
        list(read_lines(tmp_path / "g", keep_separators=False))
