"""Pairs of strings of equal length, and what is known of the task that they are from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq.data import Dictionary, FairseqDataset
from torch import Tensor
from torch.nn.functional import pad
from torch.nn.utils.rnn import pad_sequence

from fairseq_stack.companions import TASK
from fairseq_stack.errors import UserError
from fairseq_stack.files import read_text, reading_as
from fairseq_stack_preprocess.transduction.tasks import AFTER_READING, AT_LAST


@dataclass(frozen=True)
class TaskFile:
    """What ``task.json`` says of a task; nothing, if there is none.

    Attributes:
        path: the file.
        name: the name of the task.
        blank: the word that pads inputs.
        scored: the words of targets that count.
        longest: for each split, the number of symbols of the longest input that could be in it.
    """

    path: Path | None = None
    name: str | None = None
    blank: str | None = None
    scored: Sequence[str] | None = None
    longest: Mapping[str, int] = field(default_factory=dict)


def read_task_file(data: Path) -> TaskFile:
    """Read the ``task.json`` in a folder of data, as next to a checkpoint, or in the folder that holds it.

    Raises:
        UserError: the file is not one that ``fairseq-stack prepare transduction`` wrote.
    """
    paths = [folder / TASK for folder in (data, data.absolute().parent) if (folder / TASK).is_file()]
    if not paths:
        return TaskFile()
    with reading_as("a task.json of fairseq-stack prepare transduction", paths[0]):
        content = json.loads(read_text(paths[0]))
        return TaskFile(paths[0], content["task"], content["blank"], content["scored"], content["longest"])


def may_be_scored(task: str | None, inputs: Tensor, lengths: Tensor, blank: int | None) -> Tensor:
    """Where targets of a task can be scored, (B, n), for inputs (B, n) of these lengths (B,)."""
    places = torch.arange(inputs.size(1), device=inputs.device)
    if task in AT_LAST:
        return places == lengths.unsqueeze(1) - 1
    within = places < lengths.unsqueeze(1)
    return within & (inputs == blank) if task in AFTER_READING else within


class Transductions(FairseqDataset):
    """Pairs of strings of words, without ``</s>``, in batches that are padded on the right.

    Inputs are padded with blanks if there is a blank, which the network reads; targets, and symbols that are not
    scored, with padding.

    Args:
        inputs: the inputs, which may end in ``</s>``.
        targets: the targets; None if only outputs are wanted.
        dictionary: the dictionary of both.
        name: what the pairs are called in errors.
        scored: the words that are scored, of the dictionary's size: true or false.
        padding: what inputs are padded with.
        pad_to_longest: whether inputs are padded to the maximum length of all, instead of that of the batch.
        longest: the maximum length of an input; None for the length of the longest one.
        shuffle: whether the order changes in each epoch.

    Raises:
        UserError: a pair is empty, its strings have different lengths, it has a symbol that the dictionary lacks, or
            it is longer than inputs are padded to.
    """

    def __init__(
        self,
        inputs: Sequence[Tensor],
        targets: Sequence[Tensor] | None,
        dictionary: Dictionary,
        *,
        name: str,
        scored: Tensor,
        padding: int,
        pad_to_longest: bool = False,
        longest: int | None = None,
        shuffle: bool = False,
    ) -> None:
        super().__init__()
        self.dictionary, self.name = dictionary, name
        self.scored, self.padding, self.shuffle = scored, padding, shuffle
        self.inputs = [self._words(string, "input", number) for number, string in enumerate(inputs, start=1)]
        self.targets = None
        if targets is not None:
            self.targets = [self._words(string, "target", number) for number, string in enumerate(targets, start=1)]
            self._check_lengths(self.targets)
        self.sizes = np.array([len(words) for words in self.inputs])
        self.pad_to = 0
        if pad_to_longest:
            self.pad_to = int(self.sizes.max(initial=0)) if longest is None else longest
            self._check_longest()

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {
            "id": index,
            "source": self.inputs[index],
            "target": None if self.targets is None else self.targets[index],
        }

    def __len__(self) -> int:
        return len(self.inputs)

    def size(self, index: int) -> int:
        """The number of symbols of an input, which ``--max-tokens`` counts."""
        return max(int(self.sizes[index]), self.pad_to)

    num_tokens = size

    def ordered_indices(self) -> np.ndarray:
        """The order of the pairs: theirs, or one that fairseq's seed decides. They are never sorted by length."""
        return np.random.permutation(len(self)) if self.shuffle else np.arange(len(self))

    def collater(self, samples: list[dict[str, Any]]) -> dict[str, Any]:
        """A batch: ``target`` has only scored symbols, ``whole_target`` all of them."""
        if not samples:
            return {}
        lengths = torch.tensor([len(sample["source"]) for sample in samples])
        length = max(int(lengths.max()), self.pad_to)
        batch = {
            "id": torch.tensor([sample["id"] for sample in samples]),
            "nsentences": len(samples),
            "ntokens": int(lengths.sum()),
            "net_input": {
                "src_tokens": _padded([sample["source"] for sample in samples], length, self.padding),
                "src_lengths": lengths,
            },
            "target": None,
        }
        if self.targets is not None:
            hidden = self.dictionary.pad()
            whole = _padded([sample["target"] for sample in samples], length, hidden)
            batch |= {"whole_target": whole, "target": whole.masked_fill(~self.scored[whole], hidden)}
        return batch

    def _words(self, string: Tensor, side: str, number: int) -> Tensor:
        words = string[:-1] if len(string) and string[-1] == self.dictionary.eos() else string
        if len(words) == 0:
            raise UserError(f"{self.name}, string {number}: the {side} is empty; expected at least one symbol")
        if int(words.min()) < self.dictionary.nspecial:
            special = int(words[words < self.dictionary.nspecial][0])
            raise UserError(
                f"{self.name}, string {number}: the {side} has a symbol that the dictionary lacks (or "
                f"{self.dictionary[special]} itself); expected some of {' '.join(words_of(self.dictionary))}"
            )
        return words.long()

    def _check_lengths(self, targets: Sequence[Tensor]) -> None:
        if len(targets) != len(self.inputs):
            raise UserError(
                f"{self.name}: expected as many targets as inputs, got {len(self.inputs)} inputs and {len(targets)} "
                "targets"
            )
        for number, (source, target) in enumerate(zip(self.inputs, targets, strict=True), start=1):
            if len(source) != len(target):
                raise UserError(
                    f"{self.name}, string {number}: expected a target as long as the input, got an input of "
                    f"{len(source)} symbols and a target of {len(target)}"
                )

    def _check_longest(self) -> None:
        too_long = np.flatnonzero(self.sizes > self.pad_to)
        if len(too_long):
            raise UserError(
                f"{self.name}, string {too_long[0] + 1}: expected at most {self.pad_to} symbols, the length to which "
                f'inputs are padded, got {self.sizes[too_long[0]]}; correct "longest" in task.json'
            )


def words_of(dictionary: Dictionary) -> list[str]:
    """The words of a dictionary, without its special symbols."""
    words: list[str] = dictionary.symbols[dictionary.nspecial :]
    return words


def _padded(strings: Sequence[Tensor], length: int, padding: int) -> Tensor:
    batch = pad_sequence(list(strings), batch_first=True, padding_value=padding)
    return pad(batch, (0, length - batch.size(1)), value=padding)
