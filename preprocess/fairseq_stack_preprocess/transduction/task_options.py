"""The options of the corpus ``transduction``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import PrepareError, flag_of, require_range, require_ranges
from ..text.splits import SIZES
from .authors import SIZE, TEST_SETS
from .tasks import TASKS, Settings, Task

CORPUS = "transduction"

GREATEST_LENGTH = 10_000
GREATEST_SYMBOLS = 10_000

AUTHORS, DRAWN = "authors", "drawn"

SETTINGS = ("symbols", "depth", "min_length", "max_length", "mean_length", "std_length")
"""What tasks can be set to; all except the first have a counterpart for test, such as ``test_depth``."""


@dataclass(frozen=True)
class Options:
    """The options of the corpus. What is None gets the default of the task, if the task has this option.

    Attributes:
        task: the name of one of :data:`.TASKS`.
        symbols: number of different symbols in w.
        depth: maximum depth of a derivation in train and valid (likewise ``test_depth``).
        min_length: least length in train and valid: of w, of bits or of an expression; of counting, n (likewise
            ``max_length``, ``test_min_length``, ``test_max_length``).
        mean_length: mean length before lengths out of range are moved into it (likewise ``std_length``,
            ``test_mean_length``, ``test_std_length``).
        train_size: number of pairs in train (likewise ``valid_size``, ``test_size``).
        test_set: ``authors``, the test set of the paper's authors, or ``drawn``.
        seed: seed of train and valid.
        test_seed: seed of a drawn test set.
        binarise: whether fairseq's binary format is written as well.

    Raises:
        PrepareError: a value is out of range or cannot be combined with another, or the task has no such option.
    """

    task: str
    symbols: int | None = None
    depth: int | None = None
    min_length: int | None = None
    max_length: int | None = None
    mean_length: float | None = None
    std_length: float | None = None
    test_depth: int | None = None
    test_min_length: int | None = None
    test_max_length: int | None = None
    test_mean_length: float | None = None
    test_std_length: float | None = None
    train_size: int = 800
    valid_size: int = 100
    test_size: int | None = None
    test_set: str | None = None
    seed: int = 0
    test_seed: int | None = None
    binarise: bool = True

    def __post_init__(self) -> None:
        task = self.definition()
        self._set_default("test_size", task.test_size)
        require_ranges(self, train_size=SIZES, valid_size=SIZES, test_size=SIZES, seed=(0, None), test_seed=(0, None))
        self._set_default("test_set", AUTHORS if self.task in TEST_SETS else DRAWN)
        if self.test_set not in (AUTHORS, DRAWN):
            raise PrepareError(f"--test-set must be {AUTHORS} or {DRAWN}, got {self.test_set!r}")
        self._check_names(task)
        for name, value in task.train.items():
            self._set_default(name, value)
        if self.test_set == AUTHORS:
            self._check_authors()
        else:
            self._set_default("test_seed", 0)
            for name, value in task.test.items():
                self._set_default(f"test_{name}", value)
            _check_settings("--test-", self.settings("test"), task)
        _check_settings("--", self.settings("train"), task)

    def _set_default(self, name: str, value: object) -> None:
        if getattr(self, name) is None:
            object.__setattr__(self, name, value)

    def _check_names(self, task: Task) -> None:
        """Raise PrepareError if an option is given that the task does not have."""
        names = [*task.train, *(f"test_{name}" for name in task.test)]
        for name in (*SETTINGS, *(f"test_{name}" for name in SETTINGS[1:])):
            if getattr(self, name) is not None and name not in names:
                raise PrepareError(
                    f"{flag_of(name)} is not an option of {task.name}, which has {', '.join(map(flag_of, names))}"
                )

    def _check_authors(self) -> None:
        if self.task not in TEST_SETS:
            raise PrepareError(
                f"--test-set authors: the authors drew no test set of {self.task}; give --test-set drawn"
            )
        require_range("--test-size", self.test_size, greatest=SIZE)
        for name in ("test_seed", *(f"test_{name}" for name in SETTINGS[1:])):
            if getattr(self, name) is not None:
                raise PrepareError(f"{flag_of(name)} needs --test-set drawn; the authors' test set is fixed")
        symbols = self.definition().train.get("symbols")
        if self.symbols != symbols:
            raise PrepareError(
                f"--symbols {self.symbols} needs --test-set drawn; the authors' test set has {symbols} symbols"
            )

    def definition(self) -> Task:
        """The task."""
        if self.task not in TASKS:
            raise PrepareError(f"unknown task {self.task}; expected one of {', '.join(TASKS)}")
        return TASKS[self.task]

    def settings(self, split: str) -> Settings:
        """The settings of the task for a split. Where the test set is the authors', they are the defaults for test."""
        if split != "test":
            return {name: getattr(self, name) for name in self.definition().train}
        drawn = {name: getattr(self, f"test_{name}") for name in self.definition().test}
        settings = self.definition().test if self.test_set == AUTHORS else drawn
        return settings if self.symbols is None else {**settings, "symbols": self.symbols}


def _check_settings(prefix: str, settings: Settings, task: Task) -> None:
    """Raise PrepareError if a setting is out of range."""
    if "depth" in settings:
        require_range(f"{prefix}depth", int(settings["depth"]), 1, task.greatest_depth)
    if "symbols" in settings:
        require_range("--symbols", int(settings["symbols"]), 2, GREATEST_SYMBOLS)
    if "min_length" in settings:
        _check_lengths(prefix, settings, task.least_length)


def _check_lengths(prefix: str, settings: Mapping[str, float], least_length: int) -> None:
    least, greatest = int(settings["min_length"]), int(settings["max_length"])
    require_range(f"{prefix}min-length", least, least_length)
    require_range(f"{prefix}max-length", greatest, greatest=GREATEST_LENGTH)
    if greatest < least:
        raise PrepareError(f"{prefix}max-length {greatest} is less than {prefix}min-length {least}")
    if "mean_length" not in settings:
        return
    mean, std = settings["mean_length"], settings["std_length"]
    if not least <= mean <= greatest:
        raise PrepareError(
            f"{prefix}mean-length must be from {least} to {greatest}, the range of lengths, got {mean:g}"
        )
    if not 0 <= std <= GREATEST_LENGTH:
        raise PrepareError(f"{prefix}std-length must be from 0 to {GREATEST_LENGTH}, got {std:g}")
