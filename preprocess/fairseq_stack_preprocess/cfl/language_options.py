"""The options of the corpus ``cfl``. This module needs no numpy, so that a command line has the defaults at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..errors import PrepareError, require_range, require_ranges
from ..text.splits import SIZES
from .languages import LANGUAGES, Language, Parameters

CORPUS = "cfl"
GREATEST_LENGTH = 10_000


@dataclass(frozen=True)
class Options:
    """The options of the corpus. Either ``task`` or ``grammar`` must be given.

    Attributes:
        task: the name of one of :data:`.LANGUAGES`.
        grammar: a file with a grammar (see :mod:`.notation`).
        parameters: the parameters of the task; those that are not given have their defaults.
        min_length: minimum length in train and valid (likewise ``max_length``).
        test_min_length: minimum length in test (likewise ``test_max_length``).
        train_size: number of strings in train (likewise ``valid_size``).
        test_per_length: number of strings of each length in test.
        batch_size: number of consecutive strings of the same length.
        seed: seed of train and valid.
        test_seed: seed of test.
        attachments: whether the parses of strings are written as well.
        binarise: whether fairseq's binary format is written as well.

    Raises:
        PrepareError: a value is out of range or cannot be combined with another.
    """

    task: str | None = None
    grammar: Path | None = None
    parameters: Parameters = field(default_factory=dict)
    min_length: int = 40
    max_length: int = 80
    test_min_length: int = 40
    test_max_length: int = 100
    train_size: int = 10_000
    valid_size: int = 1_000
    test_per_length: int = 100
    batch_size: int = 10
    seed: int = 0
    test_seed: int = 0
    attachments: bool = False
    binarise: bool = True

    def __post_init__(self) -> None:
        require_ranges(self, train_size=SIZES, valid_size=SIZES, test_per_length=SIZES, batch_size=(1, None))
        require_ranges(self, seed=(0, None), test_seed=(0, None))
        for prefix, (least, greatest) in (("--", self.ranges()["train"]), ("--test-", self.ranges()["test"])):
            require_range(f"{prefix}min-length", least, 1)
            if greatest < least:
                raise PrepareError(f"{prefix}max-length {greatest} is less than {prefix}min-length {least}")
            require_range(f"{prefix}max-length", greatest, greatest=GREATEST_LENGTH)
        object.__setattr__(self, "parameters", self._all_parameters())
        if self.attachments and (self.task is None or self.language().attachments is None):
            parsed = ", ".join(language.name for language in LANGUAGES.values() if language.attachments)
            raise PrepareError(f"--attachments: {self.name()} has no parses that are known; expected --task {parsed}")

    def _all_parameters(self) -> Parameters:
        if (self.task is None) == (self.grammar is None):
            raise PrepareError("give either --task or --grammar")
        if self.task is not None:
            return self.language().parameters(self.parameters)
        if self.parameters:
            raise PrepareError("task parameters cannot be combined with --grammar")
        return {}

    def language(self) -> Language:
        """The language of the task."""
        if self.task not in LANGUAGES:
            raise PrepareError(f"unknown task {self.task}; expected one of {', '.join(LANGUAGES)}")
        return LANGUAGES[self.task]

    def name(self) -> str:
        """The source of the corpus: the task or the grammar's file."""
        return self.task or str(self.grammar)

    def ranges(self) -> Mapping[str, tuple[int, int]]:
        """The minimum and maximum length of each split."""
        train = self.min_length, self.max_length
        return {"train": train, "valid": train, "test": (self.test_min_length, self.test_max_length)}

    def for_manifest(self) -> dict[str, Any]:
        """The options, with the grammar's name instead of its path, and ``attachments`` only if they are wanted."""
        options = {**asdict(self), "grammar": None if self.grammar is None else self.grammar.name}
        if not self.attachments:
            del options["attachments"]
        return options
