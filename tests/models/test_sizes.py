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


@pytest.mark.parametrize("layers", ["2xsdpa", "sup-40,sup-1", "nd-3-3-5,nd-2-7-1@9,nd-1-1-64"])
def test_the_count_is_that_of_the_model_less_its_small_parameters(layers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sides: list[sizes.Side] = []
    monkeypatch.setattr("fairseq_stack.models.transformer.translation.require_memory", sides.extend)
    model = build_translation_model(
        "stack_transformer_tf_small", DICTIONARY, f"--stack-encoder-layers={layers}", f"--stack-decoder-layers={layers}"
    )
    assert sum(side.num_parameters() for side in sides) == large_parameters(model)


@pytest.mark.parametrize("options", [[], ["--share-decoder-input-output-embed"]])
def test_tables_that_are_not_shared_are_counted_each(options: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    sides: list[sizes.Side] = []
    monkeypatch.setattr("fairseq_stack.models.transformer.translation.require_memory", sides.extend)
    model = build_translation_model("stack_transformer", DICTIONARY, *options)
    assert sum(side.num_parameters() for side in sides) == large_parameters(model)


@pytest.mark.parametrize("options", [[], ["--decoder-embed-dim=7"], ["--share-decoder-input-output-embed"]])
def test_the_count_of_an_lstm_is_that_of_the_model_less_the_gates_of_readings(
    options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    parts: list[sizes.Recurrent] = []
    monkeypatch.setattr("fairseq_stack.models.lstm.language_model.require_memory", parts.extend)
    flags = ["--stack=sup-4+nd-2-3-5+ns-2-2", "--decoder-hidden-size=30", *options]
    model = build_language_model("stack_lstm_lm", DICTIONARY, *flags)
    num_readings = 4 + 2 * 3 * 5 + 2 * 2
    assert parts[0].num_parameters() == large_parameters(model) - 3 * 30 * num_readings


def test_the_limit_is_the_memory_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(sizes.MEMORY_LIMIT, raising=False)
    limit = sizes.memory_limit()
    assert limit is not None
    assert 2**28 < limit < 2**50


def test_limit_of_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ("stack_transformer_lm_nd_ptb", DICTIONARY)  # about 3.9 million parameters: 59 MiB
    monkeypatch.setenv(sizes.MEMORY_LIMIT, "0.1")
    build_language_model(*model)
    monkeypatch.setenv(sizes.MEMORY_LIMIT, "0.05")
    with pytest.raises(UserError, match=r"--stack-layers and the sizes.* 3,\d{3},\d{3} parameters would take"):
        build_language_model(*model)


@pytest.mark.parametrize("limit", ["", "x", "0", "-1", "nan"])
def test_wrong_limit(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(sizes.MEMORY_LIMIT, limit)
    with pytest.raises(UserError, match=f"{sizes.MEMORY_LIMIT}: expected a positive number of GiB, got '{limit}'"):
        sizes.memory_limit()


def test_without_a_limit_everything_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    absurd = [sizes.Side("--stack-layers", (), 10**9, 10**9, 10**9)]
    monkeypatch.delenv(sizes.MEMORY_LIMIT, raising=False)
    with pytest.raises(UserError, match="--stack-layers and the sizes of the model"):
        sizes.require_memory(absurd)
    monkeypatch.setattr(sizes, "memory_limit", lambda: None)
    sizes.require_memory(absurd)
