"""Exported models that the tests of this folder share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY
from tests.end_to_end.conftest import (  # noqa: F401
    corpora,
    language_model,
    recurrent_model,
    stock_model,
    translation_model,
)

EXAMPLES = REPOSITORY / "examples" / "models"


@dataclass(frozen=True)
class Exported:
    """A model as fairseq loads it, and the folder that was made of it."""

    hub: Any
    folder: Path

    def model(self, **settings: Any) -> Any:
        """As transformers loads it."""
        import fairseq_stack.huggingface  # noqa: F401
        from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM

        translates = AutoConfig.from_pretrained(self.folder).is_encoder_decoder
        auto = AutoModelForSeq2SeqLM if translates else AutoModelForCausalLM
        return auto.from_pretrained(self.folder, **settings)

    def tokenizer(self, subfolder: str = "") -> Any:
        import fairseq_stack.huggingface  # noqa: F401
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(self.folder / subfolder)


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
