"""Exported models that the tests of this folder share."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack import cli
from fairseq_stack_preprocess.mt.translation_corpus import prepare
from tests.conftest import REPOSITORY
from tests.end_to_end.conftest import (  # noqa: F401
    corpora,
    language_model,
    recurrent_model,
    stock_model,
    trained,
    translation_model,
)
from tests.end_to_end.fairseq_commands import LANGUAGE_MODEL, TRAINING, TRANSLATION, run
from tests.end_to_end.test_streams import stream, stream_model  # noqa: F401
from tests.preprocess.mt.pairs import options_for, write_pairs

EXAMPLES = REPOSITORY / "examples" / "models"


@dataclass(frozen=True)
class Exported:
    """A model as fairseq loads it, and the folder that was made of it."""

    hub: Any
    folder: Path

    def model(self, **settings: Any) -> Any:
        """As transformers loads it."""
        from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM

        import fairseq_stack.huggingface  # noqa: F401

        translates = AutoConfig.from_pretrained(self.folder).is_encoder_decoder
        auto = AutoModelForSeq2SeqLM if translates else AutoModelForCausalLM
        return auto.from_pretrained(self.folder, **settings)

    def tokenizer(self, subfolder: str = "") -> Any:
        from transformers import AutoTokenizer

        import fairseq_stack.huggingface  # noqa: F401

        return AutoTokenizer.from_pretrained(self.folder / subfolder)


PAIRS = [
    (f"Der „Satz“ Nummer\u2009{i} ist eﬃzient für {chr(97 + i)}Ψ .", f"the “sentence” number\u00a0{i} is eﬃcient .")
    for i in range(26)
]
"""Sentences in two languages, with characters that are normalised."""


@pytest.fixture(scope="session")
def piece_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of a translation model of pieces, with a compact vocabulary."""
    folder = tmp_path_factory.mktemp("pieces")
    options = options_for(write_pairs(folder / "c", PAIRS), pieces=90, piece_threshold=5, moses=True, binarise=True)
    prepare(options, folder / "corpus")
    model = [*TRANSLATION, "--compact-vocab", "--share-decoder-input-output-embed", "--dropout", 0]
    training = [*TRAINING, "--max-epoch", 40, "--save-dir", folder / "model"]
    run("train", folder / "corpus" / "data-bin", *model, *training)
    return folder / "model" / "checkpoint_last.pt"


@pytest.fixture(scope="session")
def piece_language_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of a language model whose words have up to several pieces."""
    folder, rng = tmp_path_factory.mktemp("piece-language-model"), random.Random(1)
    words = ["".join(rng.choices("abc", k=rng.randint(1, 6))) for _ in range(40)]
    sentences = [rng.choices(words, k=rng.randint(1, 8)) for _ in range(100)]
    (folder / "trees").write_text("".join(f"(S {' '.join(f'(W {w})' for w in words)})\n" for words in sentences))
    splits = [option for split in ("train", "valid", "test") for option in (f"--{split}", str(folder / "trees"))]
    assert cli.main(["prepare", "treebank", str(folder / "corpus"), *splits, "--pieces", "30"]) == 0
    return trained(folder / "corpus" / "data-bin", LANGUAGE_MODEL, tmp_path_factory)


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A function that exports a checkpoint, each of them once."""
    pytest.importorskip("transformers")
    from fairseq_stack.hub.interface import load
    from fairseq_stack.huggingface.export import export

    made: dict[Path, Exported] = {}

    def make(checkpoint: Path) -> Exported:
        if checkpoint not in made:
            folder = tmp_path_factory.mktemp("exported") / "model"
            model = Exported(load(checkpoint), folder)
            export(model.hub, folder)
            made[checkpoint] = model
        return made[checkpoint]

    return make
