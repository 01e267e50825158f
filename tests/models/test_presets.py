"""What the papers say of their models besides sizes: heads, dropout, positions, and how parameters begin."""

from __future__ import annotations

import pytest

from fairseq_stack.models.presets import PRESETS

# By the end of the preset's name: heads, and the range of initial parameters.
TRANSFORMERS = {
    **dict.fromkeys(["cfl", "qf", "tr"], (4, 0.1)),
    **dict.fromkeys(["ptb", "small", "medium", "large"], (8, 0.01)),
}
LSTMS = {**dict.fromkeys(["cfl", "2020", "qf", "tr"], ("paper", 0.1)), "ptb": ("uniform", 0.05)}
DROPOUTS = ("dropout", "attention_dropout", "activation_dropout")


@pytest.mark.parametrize("name", [*PRESETS["stack_transformer"], *PRESETS["stack_transformer_lm"]])
def test_transformers(name: str) -> None:
    """Section 6 and Appendices D, F and G of DuSell & Chiang (2024), and DuSell & Cotterell (2025)."""
    settings = {**PRESETS["stack_transformer"], **PRESETS["stack_transformer_lm"]}[name]
    heads, scale = TRANSFORMERS[name.rpartition("_")[2]]
    expected = {"decoder_attention_heads": heads, "stack_init": "paper", "stack_init_scale": scale}
    if name in PRESETS["stack_transformer"]:
        expected["encoder_attention_heads"] = heads
    assert settings | expected | dict.fromkeys(DROPOUTS, 0.1) | {"stack_positions": "interleaved"} == settings


@pytest.mark.parametrize("name", PRESETS["stack_lstm_lm"])
def test_lstms(name: str) -> None:
    settings, end = PRESETS["stack_lstm_lm"][name], name.rpartition("_")[2]
    assert (settings["stack_init"], settings["stack_init_scale"]) == LSTMS[end]
    assert settings.get("dropout", 0) == (0.1 if end in ("qf", "tr") else 0)


@pytest.mark.parametrize("name", PRESETS["pushdown_transformer_lm"])
def test_pushdown_transformers(name: str) -> None:
    settings = PRESETS["pushdown_transformer_lm"][name]
    assert settings["decoder_attention_heads"] == (12 if name.endswith("gpt2") else 8)
    assert settings["dropout"] == settings["attention_dropout"] == 0.1
