"""Data and models that the tests of fairseq's commands share, made once a session."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack import cli
from tests.end_to_end.fairseq_commands import (
    BARE_RECURRENT,
    LANGUAGE_MODEL,
    PUSHDOWN,
    STOCK_LANGUAGE_MODEL,
    TRAINING,
    TRANSLATION,
    Output,
    run,
)

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


def trained(
    data: Path, model: Sequence[Any], tmp_path_factory: pytest.TempPathFactory, training: Sequence[Any] = TRAINING
) -> Path:
    """The checkpoint of a model that is trained for two epochs."""
    folder = tmp_path_factory.mktemp("model")
    run("train", data, *model, *training, "--save-dir", folder)
    return folder / "checkpoint_last.pt"


@pytest.fixture(scope="session")
def translation_model(corpora: Corpora, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of a translation model with all kinds of layers."""
    return trained(corpora.translation, TRANSLATION, tmp_path_factory)


@pytest.fixture(scope="session")
def language_model(corpora: Corpora, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of a language model with all kinds of layers."""
    return trained(corpora.language_modeling, LANGUAGE_MODEL, tmp_path_factory)


@pytest.fixture(scope="session")
def recurrent_model(corpora: Corpora, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of an LSTM with several kinds of stacks."""
    stacks = ["--stack", "sup-3+nd-2-2-3+ns-1-2", "--dropout", 0.2, "--recurrent-dropout", 0.1]
    return trained(corpora.language_modeling, [*BARE_RECURRENT, *stacks], tmp_path_factory)


@pytest.fixture(scope="session")
def stock_model(corpora: Corpora, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of a language model of fairseq's own."""
    return trained(corpora.language_modeling, STOCK_LANGUAGE_MODEL, tmp_path_factory)


def random_tree(rng: random.Random, words: Sequence[str], depth: int = 0) -> str:
    """A tree in brackets of at most eight words."""
    if depth > 2 or rng.random() < 0.3:
        return f"(W {rng.choice(words)})"
    return f"(P {random_tree(rng, words, depth + 1)} {random_tree(rng, words, depth + 1)})"


@pytest.fixture(scope="session")
def treebank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of a corpus of small trees, with their attachments beside them."""
    folder, rng = tmp_path_factory.mktemp("treebank"), random.Random(0)
    options: list[str] = []
    for split, size in {"train": 60, "valid": 11, "test": 5}.items():
        path = folder / f"{split}.trees"
        path.write_text("".join(f"(S {random_tree(rng, 'abcd')})\n" for _ in range(size)), encoding="utf-8")
        options += [f"--{split}", str(path)]
    assert cli.main(["prepare", "treebank", str(folder / "corpus"), *options, "--rare-words", "keep"]) == 0
    return folder / "corpus" / "data-bin"


@pytest.fixture(scope="session")
def pushdown_training(treebank: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Output]:
    """A checkpoint of a model that parses, and what training has said."""
    folder = tmp_path_factory.mktemp("pushdown")
    output = run("train", treebank, *PUSHDOWN, *TRAINING, "--save-dir", folder)
    return folder / "checkpoint_last.pt", output


@pytest.fixture(scope="session")
def pushdown_model(pushdown_training: tuple[Path, Output]) -> Path:
    """A checkpoint of a model that parses."""
    return pushdown_training[0]
