"""The attachments of sentences as one more column of batches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq.data import BaseWrapperDataset
from numpy.typing import NDArray

from fairseq_stack.errors import UserError
from fairseq_stack.files import read_lines
from fairseq_stack.ops import legal_attachments, roots_of_sentences, stack_tape
from fairseq_stack_preprocess.trees.spans import spans_of_attachments

Attachments = NDArray[np.int32]


def read_attachments(path: Path, sizes: Sequence[int]) -> list[Attachments]:
    """Read a file ``.attach`` of ``fairseq-stack prepare treebank``: r_1, ..., r_n of a sentence in each line.

    Args:
        path: the file.
        sizes: how many tokens the sentences of the data have, their ends included.

    Raises:
        UserError: the file is missing, is not aligned with the data, or has an illegal attachment.
    """
    if not path.is_file():
        raise UserError(
            f"{path} is not a file: expected attachments as fairseq-stack prepare treebank or, for prompts, "
            "fairseq-stack parse-prompts writes them; name their folder with --attachments"
        )
    lines = read_lines(path)
    if len(lines) != len(sizes):
        raise UserError(
            f"{path}: expected {len(sizes):,} lines, one for each sentence of the data, got {len(lines):,}; prepare "
            "the corpus again"
        )
    return [
        _parse(line, int(size) - 1, f"{path}, line {number}")
        for number, (line, size) in enumerate(zip(lines, sizes, strict=True), start=1)
    ]


def _parse(line: str, tokens: int, place: str) -> Attachments:
    try:
        attached = np.array(line.split(), dtype=np.int32)
    except (ValueError, OverflowError):
        raise UserError(f"{place}: expected numbers of tokens, got {line[:80]!r}") from None
    if len(attached) != tokens:
        raise UserError(f"{place}: expected {tokens} attachments, one for each token, got {len(attached)}")
    try:
        spans_of_attachments(attached.tolist())
    except ValueError as error:
        raise UserError(f"{place}: {error}") from None
    return attached


def of_window(sentences: Sequence[Attachments]) -> Attachments:
    """The attachments of sentences one after the other: of their words, and of the end of each to its ROOT.

    ROOT of a sentence is the end of the sentence before it, whose number is added to what the words attach to.

    Args:
        sentences: r_1, ..., r_n of each.

    Returns:
        As many numbers as the sentences have words and ends; token 0 is ROOT of the first sentence.
    """
    root, parts = 0, []
    for attached in sentences:
        parts += [root + attached, np.array([root], dtype=np.int32)]
        root += len(attached) + 1
    return np.concatenate(parts)


class WithAttachments(BaseWrapperDataset):
    """Sentences with their parses, or windows of several sentences. Batches have, of samples of n tokens at most,

    - in ``net_input``: ``tape`` (B, n, n), and the ``next_words`` (B, n), which attach to something;
    - ``attachments`` (B, n): what the next words attach to; the end of a sentence to its ROOT;
    - ``legal_attachments`` (B, n, n + 1), what they may attach to.

    Args:
        dataset: samples of whole sentences, which begin with ``</s>`` as ROOT.
        attachments: of each sample, with the ends of sentences: see :func:`of_window`.
    """

    def __init__(self, dataset: Any, attachments: Sequence[Attachments]) -> None:
        super().__init__(dataset)
        self.attachments = attachments

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {**self.dataset[index], "attachments": torch.from_numpy(self.attachments[index])}

    def collater(self, samples: list[dict[str, Any]]) -> dict[str, Any]:
        """As the data set's, with the tapes."""
        batch: dict[str, Any] = super().collater(samples)
        if not batch:
            return batch
        rows, length = batch["net_input"]["src_tokens"].shape
        attachments = torch.arange(length + 1).repeat(rows, 1)  # Pads attach to themselves.
        parses = attachments[:, :-1].clone()
        for row, sample in enumerate(samples):
            attached = sample["attachments"]
            attachments[row, 1 : len(attached) + 1] = attached
            parses[row, 1 : len(attached)] = attached[:-1]  # The last end is not read.
        return {
            **batch,
            "net_input": {**batch["net_input"], "tape": stack_tape(parses), "next_words": batch["target"]},
            "attachments": attachments[:, 1:],
            "legal_attachments": legal_attachments(parses, attachments[:, 1:] == roots_of_sentences(parses)),
        }
