"""Prompts with labels, as ``prepare classification`` writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fairseq_stack.companions import TASK
from fairseq_stack.errors import UserError
from fairseq_stack.files import read_columns, read_text, reading_as
from fairseq_stack_preprocess.layout import SUFFIX, TEXT

Line = tuple[str, ...]


@dataclass(frozen=True)
class Prompts:
    """A corpus of prompts.

    Attributes:
        folder: its folder.
        task: the name of the task.
        labels: the tokens of each label by its text; None: the task is a regression.
    """

    folder: Path
    task: str
    labels: Mapping[str, Line] | None

    @property
    def text(self) -> Path:
        """The folder with the files that have a line for each prompt."""
        return self.folder / TEXT

    @property
    def splits(self) -> list[str]:
        """The names of the splits."""
        return sorted(path.stem for path in self.text.glob("*.label"))

    def read(self, split: str) -> tuple[list[Line], list[str]]:
        """The tokens of each prompt, without its label, and the labels.

        Raises:
            UserError: the corpus lacks the split.
        """
        paths = [self.text / f"{split}.{suffix}" for suffix in (SUFFIX, "label")]
        if not all(path.is_file() for path in paths):
            raise UserError(f"{self.folder} has no split {split}; it has {', '.join(self.splits)}")
        lines, labels = read_columns(*paths)
        tokens = [tuple(line.split()) for line in lines]
        if self.labels is None:
            return tokens, labels
        if unknown := set(labels) - set(self.labels):
            raise UserError(f"{paths[1]} has the label {min(unknown)}; expected some of {', '.join(self.labels)}")
        return [line[: -len(self.labels[label])] for line, label in zip(tokens, labels, strict=True)], labels


def read_prompts(folder: Path) -> Prompts:
    """Read what a corpus of prompts is about.

    Args:
        folder: the folder of the corpus, or its ``data-bin``; or of a checkpoint, next to which are its companions.

    Raises:
        UserError: the folder holds no such corpus.
    """
    expected = "expected a corpus of fairseq-stack prepare classification"
    roots = [root for root in (folder, folder.absolute().parent) if (root / TASK).is_file()]
    if not roots:
        raise UserError(f"{folder} has no {TASK}: {expected}")
    with reading_as("a file of fairseq-stack prepare classification", roots[0] / TASK):
        content = json.loads(read_text(roots[0] / TASK))
        labels = content["labels"]
        tokens = None if labels is None else {name: tuple(of_it) for name, of_it in labels.items()}
        return Prompts(roots[0], content["task"], tokens)
