"""The text of a split of ``mt``: normalised, filtered, sampled, and written."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

from ..errors import PrepareError
from ..layout import TEXT
from ..progress import progress, say
from ..text.output import write_columns
from .pair_filters import NOT_SAMPLED, draw_sample
from .parallel_text import PairedFiles, Transform, read_pairs
from .translation_options import CORPUS, Options
from .wmt_markup import Pair


@dataclass
class SplitReport:
    """What happened to the pairs of a split."""

    read: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    pairs: int = 0
    pieces: dict[str, float] = field(default_factory=dict)
    made_blank: Counter[str] = field(default_factory=Counter)

    def counts(self) -> dict[str, Any]:
        """For the manifest."""
        blank = {"white_space_made_blank": dict(sorted(self.made_blank.items()))} if self.made_blank else {}
        return {"pairs_read": self.read, "pairs": self.pairs, **self.pieces, **blank}


def normalizer(language: str, normalization: str, moses: bool) -> Transform:
    """How text of a language is normalised; see :class:`.translation_options.Options` for the values."""
    punctuation: Transform | None = None
    if moses:
        from sacremoses import MosesPunctNormalizer

        punctuation = MosesPunctNormalizer(lang=language.partition("-")[0]).normalize

    def normalize(text: str) -> str:
        # A line feed neither combines nor decomposes: a block is normalised as each of its lines would be.
        if normalization == "nfkc":
            text = unicodedata.normalize("NFKC", text)
        elif normalization == "nfc":
            text = unicodedata.normalize("NFC", text)
        return text if punctuation is None else "\n".join(map(punctuation, text.split("\n")))

    return normalize


def pairs_of(split: str, files: Iterable[PairedFiles], options: Options, report: SplitReport) -> Iterator[Pair]:
    """Yield the pairs of a split that pass the filters, and note in ``report`` what was read and dropped."""
    change = (
        normalizer(options.source, options.normalization, options.moses),
        normalizer(options.target, options.normalization, options.moses),
    )
    corpora = (read_pairs(corpus, change, keep_separators=options.keep_separators) for corpus in files)
    pairs = islice(chain.from_iterable(corpora), options.limit)
    wanted = options.filter_of(split)
    for pair in progress(pairs, label=f"{CORPUS}: {split}", total=None):
        report.read += 1
        reason = wanted.reason(*pair)
        if reason is None:
            yield pair
        else:
            report.dropped[reason] += 1


def write_text(split: str, files: list[PairedFiles], options: Options, folder: Path) -> SplitReport:
    """Write the text of a split, sampled if the options say so, and return what happened to it.

    Raises:
        PrepareError: no pair is left.
    """
    report = SplitReport()

    def pairs() -> Iterator[Pair]:
        report.read = 0
        report.dropped.clear()
        return pairs_of(split, files, options, report)

    chosen: Iterable[Pair]
    if split == "train" and options.sample is not None:
        chosen, count = draw_sample(pairs, options.sample, options.seed)
        report.dropped[NOT_SAMPLED] = count - len(chosen)
        if count < options.sample:
            say(f"{CORPUS}: {split} has only {count} pairs; --sample {options.sample} keeps all of them")
    else:
        chosen = pairs()
    report.pairs = write_columns([side_of(folder / TEXT, split, language) for language in options.languages()], chosen)
    if not report.pairs:
        reasons = ", ".join(f"{reason}: {count}" for reason, count in sorted(report.dropped.items()))
        raise PrepareError(f"--{split}: none of the {report.read} pairs read is left ({reasons})")
    return report


def side_of(folder: Path, split: str, language: str) -> Path:
    """The file of a split in one language."""
    return folder / f"{split}.{language}"
