"""An untrained model that all tests share."""

from __future__ import annotations

import pytest
import torch

from fairseq_stack.hub.interface import Hub, load
from tests.inspection.checkpoints import write_translation_model


@pytest.fixture(scope="session")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Hub:
    """A translation model with sdpa, nd, sup and strat in its encoder and its decoder."""
    folder = tmp_path_factory.mktemp("untrained")
    torch.manual_seed(0)
    write_translation_model(folder / "data", folder / "checkpoint.pt", "sdpa,nd-2-2-3,sup-4,strat-3")
    return load(folder / "checkpoint.pt", folder / "data")
