"""Published set-ups of the corpus ``mt``: their options, and where their text comes from."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import PrepareError
from .parallel_text import find_files
from .translation_options import Options


@dataclass(frozen=True)
class Preset:
    """A published set-up: options, and where its data are.

    Attributes:
        options: values of :class:`Options`, except for the prefixes.
        archives: the address of the archive that has the text of each split.
        prefixes: for each split, the prefix of its text in the folder in which the archives were unpacked.
    """

    options: dict[str, Any]
    archives: dict[str, str]
    prefixes: dict[str, str]

    def options_in(self, raw: Path) -> dict[str, Any]:
        """The values of :class:`Options` if the archives were unpacked in ``raw``."""
        paths = {split: raw / prefix for split, prefix in self.prefixes.items()}
        return {**self.options, **paths, "train": (paths["train"],)}

    def require_text(self, options: Options, splits: Collection[str]) -> None:
        """Raise PrepareError, with the archive's address, if text of one of these splits is missing."""
        for split in splits:
            for prefix in options.prefixes()[split]:
                try:
                    find_files(prefix, *options.languages())
                except PrepareError as error:
                    raise PrepareError(f"--{split}: {error}. Unpack {self.archives[split]} in --raw") from error


PRESETS = {
    # German-English, as in DuSell & Chiang (2024), Section 8 and Appendix G.1. The authors take newstest2016 from
    # WMT 2017's dev.tgz, for which no checksum is published; it is the test set of WMT 2016.
    "europarl-dusell-2024": Preset(
        options={
            "source": "de",
            "target": "en",
            "max_ratio": 4.0,
            "max_chars": 150,
            "drop_lone_periods": True,
            "filter_all": True,
            "sample": 100_000,
            "seed": 123,
            "pieces": 32_000,
            "piece_threshold": 50,
            "keep_separators": True,
        },
        archives={
            "train": "https://www.statmt.org/wmt13/training-parallel-europarl-v7.tgz",
            "valid": "https://data.statmt.org/wmt16/translation-task/test.tgz",
            "test": "https://data.statmt.org/wmt17/translation-task/test.tgz",
        },
        prefixes={
            "train": "training/europarl-v7.de-en",
            "valid": "test/newstest2016-deen",
            "test": "test/newstest2017-deen",
        },
    )
}
