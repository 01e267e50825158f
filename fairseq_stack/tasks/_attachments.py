"""The attachments of sentences as one more column of batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq.data import BaseWrapperDataset
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from fairseq_stack.errors import UserError
from fairseq_stack.files import read_lines
from fairseq_stack.ops import legal_attachments, stack_tape

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
            f"{path} is not a file: expected attachments as fairseq-stack prepare treebank writes them; name their "
            "folder with --attachments"
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
    wrong = _first_illegal(attached.tolist())
    if wrong is not None:
        raise UserError(
            f"{place}: token {wrong} attaches to {attached[wrong - 1]}; expected {wrong}, or the last token of a "
            "constituent on the stack"
        )
    return attached


def _first_illegal(attached: Iterable[int]) -> int | None:
    """The first token that attaches neither to itself nor to where a constituent on the stack ends."""
    stack: list[int] = []
    for token, other in enumerate(attached, start=1):
        if other != token:
            while stack and stack[-1] > other:
                stack.pop()
            if not stack or stack.pop() != other:
                return token
        stack.append(token)
    return None


def parse_before_end(attached: Tensor) -> Tensor:
    """The attachments r_0, ..., r_{n-1} of a parse without the end of the sentence, from r_1, ..., r_n with it."""
    tokens = torch.arange(attached.size(1), device=attached.device)
    shifted = pad(attached, (1, 0))[:, :-1]
    return torch.where(shifted == 0, tokens, shifted)


def with_parses(batch: dict[str, Any], parses: Tensor, attached: Tensor) -> dict[str, Any]:
    """A batch with the columns of :class:`WithAttachments`.

    Args:
        batch: with ``net_input`` and ``target``.
        parses: what the tokens 0, ..., n - 1 attach to on the tapes, (B, n).
        attached: what the next words are to attach to, (B, n); the end of the sentence to 0.
    """
    return {
        **batch,
        "net_input": {**batch["net_input"], "tape": stack_tape(parses), "next_words": batch["target"]},
        "attachments": attached,
        "legal_attachments": legal_attachments(parses, attached == 0),
    }


class WithAttachments(BaseWrapperDataset):
    """Sentences with their parses. Batches have, of sentences with n - 1 words at most,

    - in ``net_input``: ``tape`` (B, n, n), and the ``next_words`` (B, n), which attach to something;
    - ``attachments`` (B, n): what the next words attach to; the end of the sentence attaches to ROOT, 0;
    - ``legal_attachments`` (B, n, n + 1), what they may attach to.

    Args:
        dataset: samples of one sentence each, which begin with ``</s>`` as ROOT.
        attachments: of each sentence.
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
        for row, sample in enumerate(samples):
            words = len(sample["attachments"])
            attachments[row, 1 : words + 1] = sample["attachments"]
            attachments[row, words + 1] = 0
        return with_parses(batch, parse_before_end(attachments[:, 1:]), attachments[:, 1:])
