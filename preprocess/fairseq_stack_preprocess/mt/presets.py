"""Published set-ups of the corpus ``mt``: their options, and their text, downloaded if need be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import PrepareError
from ..text.download import Archive, obtain
from .parallel_text import look_for_files, what_is_read
from .translation_options import Options


@dataclass(frozen=True)
class Preset:
    """A published set-up: options, and where its data are.

    Attributes:
        options: values of :class:`Options`, except for the prefixes.
        archives: what is downloaded for each split.
        archive_prefixes: for each split, the prefix of its text when the archive is unpacked.
        other_prefixes: other prefixes, under which the text may have been put into the folder by hand.
    """

    options: dict[str, Any]
    archives: dict[str, Archive]
    archive_prefixes: dict[str, str]
    other_prefixes: dict[str, tuple[str, ...]]


# The checksum of Europarl comes from TensorFlow Datasets, the others come from sacrebleu. The authors take
# newstest2016 from WMT 2017's dev.tgz, for which none is published; it is the test set of WMT 2016.
EUROPARL = Archive(
    "https://www.statmt.org/wmt13/training-parallel-europarl-v7.tgz",
    "training-parallel-europarl-v7.tgz",
    "sha256:0224c7c710c8a063dfd893b0cc0830202d61f4c75c17eb8e31836103d27d96e7",
    ("training/europarl-v7.de-en.de", "training/europarl-v7.de-en.en"),
)
NEWSTEST_2016 = Archive(
    "https://data.statmt.org/wmt16/translation-task/test.tgz",
    "wmt16-test.tgz",
    "md5:3d809cd0c2c86adb2c67034d15c4e446",
    ("test/newstest2016-deen-src.de.sgm", "test/newstest2016-deen-ref.en.sgm"),
)
NEWSTEST_2017 = Archive(
    "https://data.statmt.org/wmt17/translation-task/test.tgz",
    "wmt17-test.tgz",
    "md5:86a1724c276004aa25455ae2a04cef26",
    ("test/newstest2017-deen-src.de.sgm", "test/newstest2017-deen-ref.en.sgm"),
)

PRESETS = {
    # German-English, as in DuSell & Chiang (2024), Section 8 and Appendix G.1
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
        archives={"train": EUROPARL, "valid": NEWSTEST_2016, "test": NEWSTEST_2017},
        archive_prefixes={
            "train": "training/europarl-v7.de-en",
            "valid": "test/newstest2016-deen",
            "test": "test/newstest2017-deen",
        },
        other_prefixes={
            "train": ("europarl-v7.de-en",),
            "valid": ("newstest2016-deen", "dev/newstest2016-deen", "newstest2016"),
            "test": ("newstest2017-deen", "dev/newstest2017-deen", "newstest2017"),
        },
    )
}


@dataclass(frozen=True)
class PresetText:
    """The text that a preset provides for the splits that the user did not name.

    Attributes:
        preset: the preset.
        raw: the folder of raw text.
        splits: the splits.
    """

    preset: Preset
    raw: Path
    splits: tuple[str, ...]

    def archive_prefixes(self) -> dict[str, Any]:
        """The options that name the text as it is when the archives are unpacked."""
        return _options({split: self._archive_prefix(split) for split in self.splits})

    def obtained(self, options: Options, *, may_download: bool) -> Options:
        """``options`` with the prefixes of the text, which is now in ``raw``.

        Raises:
            PrepareError: text is missing and may not be downloaded, or see :func:`.download.obtain`.
        """
        prefixes = {}
        for split in self.splits:
            prefix = self._look_for(split, options)
            if prefix is None:
                archive = self.preset.archives[split]
                if not may_download and not (self.raw / archive.name).is_file():
                    names = (self.preset.archive_prefixes[split], *self.preset.other_prefixes[split])
                    raise PrepareError(
                        f"--raw {self.raw}: no text for {split}: expected {' or '.join(names)}, or {archive.name} "
                        "(and --no-download is given)"
                    )
                obtain(archive, self.raw)
                prefix = self._archive_prefix(split)
            prefixes[split] = prefix
        return replace(options, **_options(prefixes))

    def plan(self, split: str, options: Options) -> str:
        """What would be read, unpacked or downloaded for a split, one of :attr:`splits`."""
        prefix = self._look_for(split, options)
        if prefix is not None:
            return what_is_read([prefix], *options.languages())
        archive = self.preset.archives[split]
        path = self.raw / archive.name
        return f"unpack {path}" if path.is_file() else f"download {archive.url} into {self.raw}"

    def _look_for(self, split: str, options: Options) -> Path | None:
        """The prefix under which the text lies in ``raw``, or None if it does not."""
        if self.preset.archives[split].is_unpacked(self.raw):
            return self._archive_prefix(split)
        prefixes = (self.raw / name for name in self.preset.other_prefixes[split])
        return next((prefix for prefix in prefixes if look_for_files(prefix, *options.languages())), None)

    def _archive_prefix(self, split: str) -> Path:
        return self.raw / self.preset.archive_prefixes[split]


def _options(prefixes: dict[str, Path]) -> dict[str, Any]:
    return {split: (prefix,) if split == "train" else prefix for split, prefix in prefixes.items()}
