"""Data and models that the tests of fairseq's commands share, made once a session."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.end_to_end.running import LANGUAGE_MODEL, TRAINING, TRANSLATION, run

SPLITS = {"train": 30, "valid": 6, "test": 11}  # no multiples of 8


@dataclass(frozen=True)
class Corpora:
    """Strings of letters, and the same backwards in capitals: as text, and binarised."""

    text: Path
    translation: Path
    language_modeling: Path


@pytest.fixture(scope="session")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Corpora:
    folder = tmp_path_factory.mktemp("corpora")
    rng = random.Random(0)
    for split, size in SPLITS.items():
        strings = [rng.choices("abcd", k=rng.randint(1, 6)) for _ in range(size)]
        (folder / f"{split}.src").write_text("".join(" ".join(letters) + "\n" for letters in strings))
        (folder / f"{split}.tgt").write_text("".join(" ".join(letters[::-1]).upper() + "\n" for letters in strings))
    made = Corpora(folder, folder / "translation", folder / "language_modeling")
    pairs = [option for split in SPLITS for option in (f"--{split}pref", folder / split)]
    texts = [option for split in SPLITS for option in (f"--{split}pref", folder / f"{split}.src")]
    run("preprocess", "-s", "src", "-t", "tgt", "--joined-dictionary", *pairs, "--destdir", made.translation)
    run("preprocess", "--only-source", *texts, "--destdir", made.language_modeling)
    return made


@pytest.fixture(scope="session")
def translation_model(corpora: Corpora, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of a translation model with all kinds of layers."""
    folder = tmp_path_factory.mktemp("translation_model")
    run("train", corpora.translation, *TRANSLATION, *TRAINING, "--save-dir", folder)
    return folder / "checkpoint_last.pt"


@pytest.fixture(scope="session")
def language_model(corpora: Corpora, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of a language model with all kinds of layers."""
    folder = tmp_path_factory.mktemp("language_model")
    run("train", corpora.language_modeling, *LANGUAGE_MODEL, *TRAINING, "--save-dir", folder)
    return folder / "checkpoint_last.pt"
