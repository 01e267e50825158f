"""The options of the corpus ``mt``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ..errors import PrepareError, require_ranges
from .pair_filters import PairFilter

CORPUS = "mt"

NORMALIZATIONS = ("nfkc", "nfc", "none")

LANGUAGE = re.compile(r"[A-Za-z]\w*(-\w+)*")


@dataclass(frozen=True)
class Options:
    """The options of the corpus.

    Attributes:
        source: the source language, which the names of files end in (likewise ``target``).
        train: prefixes of the training text, in order (see :mod:`.parallel_text`).
        valid: prefix of the validation text (likewise ``test``).
        normalization: ``nfkc``, ``nfc`` or ``none``.
        moses: whether Moses' punctuation normalisation (of sacremoses) comes next.
        max_ratio: training pairs whose lengths in characters have a larger ratio are dropped.
        max_chars: pairs in which a side has more characters are dropped.
        drop_lone_periods: whether pairs in which a side is "." are dropped.
        filter_all: whether empty, overlong and lone-period pairs are also dropped from valid and test, which
            otherwise stay as they are; train never keeps a pair with an empty side.
        sample: number of training pairs to keep, in the order in which they are drawn; None for all.
        seed: of the sample.
        pieces: how many BPE pieces there may be.
        piece_threshold: a side uses only pieces that occur at least this often on that side of train, and single
            characters; 0 for every piece of the model.
        hard_limit: whether too little text for so many pieces is an error.
        piece_normalization: SentencePiece's normalization rule.
        joint: whether both languages share the BPE model and the dictionary.
        like: the folder of a corpus ``mt`` whose BPE models and dictionaries are used, in place of new ones; ``pieces``
            to ``joint`` then have no effect.
        keep_separators: whether U+0085, U+2028 and the like (:data:`.streams.SEPARATORS`) stay in the text and
            become spaces in pieces, instead of being an error.
        limit: read this many pairs of each split only; None for all.
        binarise: whether fairseq's binary format is written as well.

    Raises:
        PrepareError: a value is out of range.
    """

    source: str
    target: str
    train: tuple[Path, ...]
    valid: Path
    test: Path
    normalization: str = "nfkc"
    moses: bool = False
    max_ratio: float | None = None
    max_chars: int | None = None
    drop_lone_periods: bool = False
    filter_all: bool = False
    sample: int | None = None
    seed: int = 0
    pieces: int = 8000
    piece_threshold: int = 0
    hard_limit: bool = False
    piece_normalization: str = "identity"
    joint: bool = True
    like: Path | None = None
    keep_separators: bool = False
    limit: int | None = None
    binarise: bool = True

    def __post_init__(self) -> None:
        for flag, language in (("--source", self.source), ("--target", self.target)):
            if not LANGUAGE.fullmatch(language):
                raise PrepareError(f"{flag}: expected letters, digits, _ and - such as de or pt-BR, got {language!r}")
        if self.source == self.target:
            raise PrepareError(f"--source and --target are both {self.source}")
        if not self.train:
            raise PrepareError("--train: expected at least one prefix")
        if self.max_ratio is not None and not self.max_ratio >= 1:
            raise PrepareError(f"--max-ratio must be at least 1, got {self.max_ratio:g}")
        require_ranges(self, max_chars=(1, None), sample=(1, None), limit=(1, None), seed=(0, None))
        require_ranges(self, pieces=(2, None), piece_threshold=(0, None))
        if self.normalization not in NORMALIZATIONS:
            raise PrepareError(
                f"--normalization: expected one of {', '.join(NORMALIZATIONS)}, got {self.normalization!r}"
            )

    def languages(self) -> tuple[str, str]:
        """Source and target."""
        return self.source, self.target

    def prefixes(self) -> dict[str, tuple[Path, ...]]:
        """The prefixes of each split."""
        return {"train": self.train, "valid": (self.valid,), "test": (self.test,)}

    def filter_of(self, split: str) -> PairFilter:
        """What is dropped from a split."""
        if split == "train":
            return PairFilter(True, self.drop_lone_periods, self.max_ratio, self.max_chars)
        if self.filter_all:
            return PairFilter(True, self.drop_lone_periods, None, self.max_chars)
        return PairFilter()
