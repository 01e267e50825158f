"""Small treebanks for tests, and the reference data as they are needed there."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import nltk

from fairseq_stack_preprocess.trees.brackets import Tree, clean, fold, read_trees
from tests.preprocess.corpus_folders import lines_of

CAT = """\
( (S
    (NP-SBJ-1 (DT The) (NN cat) )
    (VP (VBD sat)
      (NP (-NONE- *T*-1) )
      (PP-LOC|PP (IN on)
        (NP (DT the) (NN mat) )))
    (. .) ))
"""
DOG = "( (S (NP-SBJ (DT The) (NN dog)) (VP (VBD barked) (ADVP=2 (RB loudly))) (. .)) )\n"
DASH = "( (NP (: -) (NNP Zurich) (NNS cats)) )\n"
TRACES = "( (S (NP-SBJ (-NONE- *)) (VP (-NONE- *?*))) )\n"


def write_files(folder: Path, files: dict[str, str]) -> Path:
    """Write text files by their names, which may name folders too; return the folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return folder


def ptb_folder(folder: Path) -> Path:
    """A treebank with a file in three sections that belong to splits, and one that belongs to none."""
    files = {
        "00/wsj_0001.mrg": CAT,
        "02/wsj_0201.mrg": CAT + DOG + CAT,
        "02/wsj_0202.mrg": TRACES + DASH,
        "24/wsj_2423.mrg": DOG,
        "24/wsj_2424.mrg": CAT,
        "23/wsj_2300.mrg": DASH,
    }
    return write_files(folder, files)


def trees_of(path: Path) -> list[Tree]:
    """The trees of a file."""
    return [tree for _, tree in read_trees(path)]


def text_of(folder: Path, name: str) -> list[str]:
    """The lines of a text of a corpus."""
    return lines_of(folder / "text" / name)


def as_nltk(tree: Tree) -> nltk.Tree:
    """The same tree as nltk has it."""
    return fold(tree, lambda tag, word: nltk.Tree(tag, [word]), nltk.Tree)


def nltk_sample(reference_data: Path, folder: Path) -> list[Path]:
    """The ``.mrg`` files of nltk's sample of the Penn Treebank, unpacked into ``folder``."""
    archive = zipfile.ZipFile(reference_data / "data" / "ptb" / "nltk_sample" / "treebank.zip")
    names = sorted(name for name in archive.namelist() if name.startswith("treebank/combined/") and "wsj_" in name)
    return [Path(archive.extract(name, folder)) for name in names]


@dataclass(frozen=True)
class Block:
    """A sentence of an oracle: the tree and three lines of words; and where it is from."""

    file: str
    index: int
    tree: str
    tags: str
    words: str
    classes: str


def oracle_blocks(reference_data: Path, split: str) -> list[Block]:
    """The sentences of an oracle that was made from nltk's sample; ``split`` is train or dev."""
    folder = reference_data / "data" / "dyer_ptb"
    text = gzip.decompress((folder / f"nltk_sample.{split}.oracle.gz").read_bytes()).decode()
    blocks = [block.split("\n") for block in text.strip("\n").split("\n\n")]
    places = [row[2:] for row in oracle_map(reference_data) if row[0] == split]
    return [
        Block(file, int(index), block[0].removeprefix("# "), *(block[i].strip() for i in (1, 2, 4)))
        for block, (file, index) in zip(blocks, places, strict=True)
    ]


def oracle_map(reference_data: Path) -> list[Sequence[str]]:
    """Rows of split, place in the oracle, file and place in the file."""
    path = reference_data / "data" / "dyer_ptb" / "nltk_sample.oracle_to_mrg.tsv.gz"
    return [line.split("\t") for line in gzip.decompress(path.read_bytes()).decode().splitlines()[1:]]


def first_trees(path: Path, number: int) -> str:
    """The text of the first trees of a file."""
    begins = [line for line, _ in read_trees(path)]
    lines = path.read_text(encoding="utf-8").split("\n")
    return "\n".join(lines[: begins[number] - 1] if number < len(begins) else lines) + "\n"


def cleaned_trees(name: str, reference_data: Path, tmp_path: Path) -> list[Tree]:
    """All trees of ``nltk``'s sample, or of a file of Transformer Grammars' example."""
    folder = reference_data / "data" / "transformer_grammars_example"
    paths = nltk_sample(reference_data, tmp_path) if name == "nltk" else [folder / name]
    trees = [clean(tree) for path in paths for _, tree in read_trees(path)]
    return [tree for tree in trees if tree is not None]
