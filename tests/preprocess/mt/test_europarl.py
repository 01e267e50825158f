"""The paper's set-up on real text, with every count explained."""

from __future__ import annotations

import gzip
import random
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack_preprocess.mt.presets import PRESETS
from fairseq_stack_preprocess.mt.translation_corpus import Options, prepare
from tests.preprocess.corpus_folders import lines_of, manifest_of

from .pairs import SPLITS

PAPER = PRESETS["europarl-dusell-2024"].options


class Independent:
    """The paper's rules written down once more, a list at a time, from the description of its preprocessing."""

    def __init__(self, prefix: Path, is_train: bool) -> None:
        sides = []
        for language in ("de", "en"):
            text = gzip.decompress(Path(f"{prefix}.{language}.gz").read_bytes()).decode("utf-8")
            sides.append([unicodedata.normalize("NFKC", line) for line in text.removesuffix("\n").split("\n")])
        pairs = list(zip(*sides, strict=True))
        self.read = len(pairs)
        self.dropped: dict[str, int] = {}
        rules = {
            "a side is empty": lambda a, b: a.strip() == "" or b.strip() == "",
            "a side is a period": lambda a, b: a.strip() == "." or b.strip() == ".",
            "length ratio": lambda a, b: is_train and max(len(a) / len(b), len(b) / len(a)) > 4,
            "too long": lambda a, b: len(a) > 150 or len(b) > 150,
        }
        for name, rule in rules.items():
            rest = [pair for pair in pairs if not rule(*pair)]
            if len(rest) < len(pairs):
                self.dropped[name] = len(pairs) - len(rest)
            pairs = rest
        self.pairs = pairs


@pytest.fixture(scope="module")
def independent(reference_data: Path) -> dict[str, Independent]:
    data = reference_data / "data"
    return {
        "train": Independent(data / "europarl" / "europarl-v7.de-en.first5000", is_train=True),
        "valid": Independent(data / "newstest" / "newstest2016", is_train=False),
        "test": Independent(data / "newstest" / "newstest2017", is_train=False),
    }


@pytest.fixture(scope="module")
def europarl(reference_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The paper's set-up on the first 5,000 pairs of Europarl, sampled down to 2,000."""
    data = reference_data / "data"
    texts: dict[str, Any] = {
        "train": (data / "europarl" / "europarl-v7.de-en.first5000",),
        "valid": data / "newstest" / "newstest2016",
        "test": data / "newstest" / "newstest2017",
    }
    folder = tmp_path_factory.mktemp("europarl") / "out"
    prepare(Options(**{**PAPER, **texts, "sample": 2000, "binarise": False}), folder)
    return folder


@pytest.mark.parametrize("split", SPLITS)
def test_every_pair_of_the_paper_s_set_up_is_accounted_for(
    split: str, europarl: Path, independent: dict[str, Independent]
) -> None:
    manifest, expected = manifest_of(europarl), independent[split]
    counts = manifest["splits"][split]
    sampled = {"not in the sample": len(expected.pairs) - 2000} if split == "train" else {}
    assert manifest["dropped"][split] == {**expected.dropped, **sampled}
    assert counts["pairs_read"] == expected.read
    assert counts["pairs"] == expected.read - sum(manifest["dropped"][split].values())


@pytest.mark.parametrize("split", SPLITS)
def test_text_is_what_the_rules_leave(split: str, europarl: Path, independent: dict[str, Independent]) -> None:
    """In train, in the order in which the authors' rule draws."""
    written = list(zip(*(lines_of(europarl / "text" / f"{split}.{side}") for side in ("de", "en")), strict=True))
    pairs = independent[split].pairs
    assert written == (random.Random(123).sample(pairs, 2000) if split == "train" else pairs)
