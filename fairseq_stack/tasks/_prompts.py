"""Prompts and their labels: what ``prepare classification`` wrote, and what batches have of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq.data import BaseWrapperDataset, Dictionary, FairseqDataset
from torch import Tensor, nn

from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.prompts import read_prompts
from fairseq_stack.files import read_lines

Labels = Mapping[str, Tensor]
"""The tokens of each label by its text; the last one is the positive class."""


def read_label_tokens(data: Path, dictionary: Dictionary) -> Labels | None:
    """The labels of a corpus, whose ``task.json`` is in the folder of the data or above; None: it is a regression.

    Raises:
        UserError: see :func:`.read_prompts`; or the dictionary lacks a label.
    """
    labels = read_prompts(data).labels
    if labels is None:
        return None
    for text, tokens in labels.items():
        if missing := [token for token in tokens if token not in dictionary]:
            raise UserError(f"the label {text!r}: expected tokens of the dictionary of {data}, got {missing[0]!r}")
    return {text: torch.tensor([*map(dictionary.index, tokens)]) for text, tokens in labels.items()}


def read_labels(path: Path, labels: Labels | None, sentences: int) -> Tensor:
    """The label of each sentence, as its number, (N,); of a regression, its value.

    Raises:
        UserError: the file is missing, is not aligned with the data, or has another label.
    """
    if not path.is_file():
        raise UserError(f"{path} is not a file: expected labels as fairseq-stack prepare classification writes them")
    lines = read_lines(path)
    if len(lines) != sentences:
        raise UserError(f"{path}: expected {sentences:,} lines, one for each sentence of the data, got {len(lines):,}")
    number_of = None if labels is None else {text: number for number, text in enumerate(labels)}
    values = []
    for number, line in enumerate(lines, start=1):
        try:
            values.append(float(line) if number_of is None else number_of[line])
        except (KeyError, ValueError):
            expected = "a number" if labels is None else f"one of {', '.join(labels)}"
            raise UserError(f"{path}, line {number}: expected {expected}, got {line[:80]!r}") from None
    return torch.tensor(values)


class WithLabels(BaseWrapperDataset):
    """Prompts that end with their labels; prompts of a regression do not. Batches have

    - ``labels`` (B,): the number of the label of each prompt, or its value;
    - without a regression, ``is_label`` (B, n): whether the target is a token of the label;
    - ``candidates``, if they are wanted: for each label, a batch with ``net_input``, ``target`` and ``is_label`` of the
      same prompts with this label. Its tokens attach to themselves, as those of the right label do.

    Args:
        dataset: samples of one sentence each, which may have ``attachments``.
        labels: (N,).
        tokens: of each label; None: it is a regression.
        with_candidates: whether the candidates are wanted.
    """

    def __init__(self, dataset: Any, labels: Tensor, tokens: Sequence[Tensor] | None, *, with_candidates: bool) -> None:
        super().__init__(dataset)
        self.labels, self.tokens, self.with_candidates = labels, tokens, with_candidates
        self._sizes = np.asarray(dataset.sizes)
        if tokens is not None and with_candidates:
            lengths = np.array([len(label) for label in tokens])
            self._sizes = self._sizes - lengths[labels.numpy()] + lengths.max()

    @property
    def sizes(self) -> Any:
        """The number of tokens of each prompt, with the longest candidate."""
        return self._sizes

    def num_tokens(self, index: int) -> int:
        return int(self._sizes[index])

    size = num_tokens
    filter_indices_by_size = FairseqDataset.filter_indices_by_size  # by these sizes
    batch_by_size = FairseqDataset.batch_by_size

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {**self.dataset[index], "label": self.labels[index]}

    def collater(self, samples: list[dict[str, Any]]) -> dict[str, Any]:
        """As the data set's, with the labels."""
        batch: dict[str, Any] = super().collater(samples)
        if not batch:
            return batch
        batch["labels"] = torch.stack([sample["label"] for sample in samples])
        if self.tokens is not None:
            batch["is_label"] = _is_label(batch, [len(self._tokens_of(sample)) for sample in samples])
            if self.with_candidates:
                batch["candidates"] = [self._candidate(samples, tokens) for tokens in self.tokens]
        return batch

    def _tokens_of(self, sample: Mapping[str, Any]) -> Tensor:
        assert self.tokens is not None
        return self.tokens[int(sample["label"])]

    def _candidate(self, samples: Sequence[dict[str, Any]], tokens: Tensor) -> dict[str, Any]:
        relabelled = [_with_label(sample, len(self._tokens_of(sample)), tokens) for sample in samples]
        batch = super().collater(relabelled)
        is_label = _is_label(batch, [len(tokens)] * len(samples))
        return {"net_input": batch["net_input"], "target": batch["target"], "is_label": is_label}


def _with_label(sample: Mapping[str, Any], length: int, tokens: Tensor) -> dict[str, Any]:
    """A sample whose label of some length is replaced; the tokens of the other attach to themselves."""
    source, target = sample["source"], sample["target"]
    changed = {
        "source": torch.cat([source[:-length], tokens]),
        "target": torch.cat([target[: -length - 1], tokens, target[-1:]]),
    }
    if "attachments" in sample:
        of_prompt, end = sample["attachments"][: -length - 1], sample["attachments"][-1:]
        of_label = torch.arange(1, len(tokens) + 1, dtype=of_prompt.dtype) + len(of_prompt)
        changed["attachments"] = torch.cat([of_prompt, of_label, end])
    return {**sample, **changed}


def _is_label(batch: Mapping[str, Any], lengths: Sequence[int]) -> Tensor:
    """Whether the targets (B, n) are tokens of labels, of these lengths, each of which is before an end."""
    ends = batch["net_input"]["src_lengths"].unsqueeze(1) - 1
    places = torch.arange(batch["target"].size(1))
    return (places < ends) & (places >= ends - torch.tensor(lengths).unsqueeze(1))


class Regressor(nn.Linear):
    """Predicts a value from the final state of a prompt. A language model has none, so it then stays as it is."""

    def __init__(self, size: int) -> None:
        super().__init__(size, 1)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        for name, parameter in self.named_parameters():
            state_dict.setdefault(prefix + name, parameter.detach())
        super()._load_from_state_dict(state_dict, prefix, *args)
