"""Models that no machine can train are refused before memory is asked for."""

from __future__ import annotations

import pytest
from torch import nn

from fairseq_stack.errors import UserError
from fairseq_stack.models import sizes
from tests.models.building import build_language_model, build_translation_model, make_dictionary

DICTIONARY = make_dictionary(50)


def large_parameters(model: nn.Module) -> int:
    """How many parameters there are, without biases and layer norm."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.dim() > 1)


@pytest.mark.parametrize(
    ("layers", "options"),
    [
        ("2xsdpa", ["--share-all-embeddings"]),
        ("2xsdpa", ["--share-decoder-input-output-embed"]),
        ("sup-40,sup-1", []),
        ("nd-3-3-5,nd-2-7-1@9,nd-1-1-64", []),
    ],
)
def test_the_count_is_that_of_the_model_less_its_small_parameters(
    layers: str, options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: dict[str, int] = {}
    monkeypatch.setattr("fairseq_stack.models.transformer.transformer_options.require_memory", counted.update)
    lists = [f"--stack-{side}-layers={layers}" for side in ("encoder", "decoder")]
    model = build_translation_model("stack_transformer", DICTIONARY, *lists, *options)
    assert sum(counted.values()) == large_parameters(model)


@pytest.mark.parametrize("options", [
    [], ["--decoder-embed-dim=7", "--decoder-layers=3"], ["--share-decoder-input-output-embed", "--reading-in-output"],
])  # fmt: skip
def test_the_count_of_an_lstm_is_that_of_the_model_less_the_gates_of_readings(
    options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: dict[str, int] = {}
    monkeypatch.setattr("fairseq_stack.models.lstm.stack_lstm_lm.require_memory", counted.update)
    flags = ["--stack=sup-4+nd-2-3-5+ns-2-2", "--decoder-hidden-size=30", *options]
    model = build_language_model("stack_lstm_lm", DICTIONARY, *flags)
    num_readings = 4 + 2 * 3 * 5 + 2 * 2
    assert counted["--stack"] == large_parameters(model) - 3 * 30 * num_readings


def test_limit_of_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ("stack_transformer_lm_nd_ptb", DICTIONARY)  # about 3.9 million parameters: 59 MiB
    monkeypatch.setenv(sizes.MEMORY_LIMIT, "0.1")
    build_language_model(*model)
    monkeypatch.setenv(sizes.MEMORY_LIMIT, "0.05")
    with pytest.raises(UserError, match=r"--stack-layers and the sizes.* 3,\d{3},\d{3} parameters would take"):
        build_language_model(*model)


@pytest.mark.parametrize("limit", ["", "x", "0", "nan"])
def test_wrong_limit(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(sizes.MEMORY_LIMIT, limit)
    with pytest.raises(UserError, match=f"{sizes.MEMORY_LIMIT}: expected a positive number of GiB, got '{limit}'"):
        sizes.memory_limit()


def test_the_limit_is_the_memory_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system does not say it, everything is taken."""
    monkeypatch.delenv(sizes.MEMORY_LIMIT, raising=False)
    with pytest.raises(UserError, match="--stack-layers and the sizes of the model"):
        sizes.require_memory({"--stack-layers": 10**18})
    sizes.require_memory({"--stack-layers": 10**6})
    monkeypatch.setattr(sizes, "memory_limit", lambda: None)
    sizes.require_memory({"--stack-layers": 10**18})
