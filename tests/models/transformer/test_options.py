"""Options mean what they say, in presets and in bare architectures."""

from __future__ import annotations

import pytest

from fairseq_stack.models.transformer import encoder_decoder
from tests.models.building import build_language_model, build_translation_model, make_dictionary

DICTIONARY = make_dictionary(5)
SMALL = ("--decoder-embed-dim=16", "--decoder-ffn-embed-dim=16", "--decoder-attention-heads=2", "--decoder-layers=3")


def test_the_depth_of_stacks_is_limited() -> None:
    flags = "--stack-encoder-layers=sup-3,sdpa", "--stack-decoder-layers=sup-3,nd-2-2-3", "--stack-depth-limit=7"
    model = build_translation_model("stack_transformer_tf_small", DICTIONARY, *flags)
    for side in (model.encoder, model.decoder):
        assert side.layers[0].self_attn.attention.depth_limit == 7
    model = build_language_model("stack_transformer_lm", DICTIONARY, *SMALL, "--stack-layers=3xsup-3")
    assert model.decoder.layers[0].self_attn.attention.depth_limit is None


def test_layers_to_keep_are_those_of_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    flags = "--stack-encoder-layers=sdpa,sup-3,nd-2-2-3", "--encoder-layers-to-keep=[0, 2]"
    with pytest.raises(ValueError, match=r"^layers to keep: expected a trained model \(--model-overrides\)"):
        build_translation_model("stack_transformer_tf_small", DICTIONARY, *flags)
    monkeypatch.setattr(encoder_decoder, "is_from_checkpoint", lambda: True)
    model = build_translation_model("stack_transformer_tf_small", DICTIONARY, *flags)
    first, second = model.encoder.layers
    assert type(first.self_attn).__name__ == "MultiheadAttention"
    assert second.self_attn.attention.num_symbols == 2


@pytest.mark.parametrize(("flags", "message"), [
    (["--tie-adaptive-weights"], "^--tie-adaptive-weights: stack transformers have no adaptive softmax"),
    (["--quant-noise-pq=0.1"], "--quant-noise-pq: stack attention has no quantization noise"),
    (["--stack-layers=3xsup-2", "--stack-depth-limit=0"], "^--stack-depth-limit: expected at least 1, got 0$"),
    (["--stack-layers=2xsdpa,strat-2", "--stack-depth-limit=5"], "expected a layer of the kind sup, got sdpa,sdpa,str"),
    (["--stack-layers=3xgdelta-1-2-2", "--delta-beta-scale=3"], r"^--delta-beta-scale: expected a number in \(0, 2\]"),
    (["--stack-layers=3xgdelta-1-2-2", "--delta-convolution=-1"], "^--delta-convolution: expected at least 0, got -1$"),
    (["--stack-layers=2xsdpa,gdelta-1-2-2", "--deltastack-reading=current"], "^--deltastack-reading has no effect"),
    (["--no-padding-row", "--compact-vocab"], "^--no-padding-row has no effect: expected --share-decoder-input-"),
    (["--share-decoder-input-output-embed", "--decoder-input-dim=4"], "equal --decoder-input-dim .*, got 4 and 16$"),
    (["--decoder-attention-heads=0"], "^--decoder-attention-heads: expected at least 1, got 0$"),
    (["--dropout=1.5"], "^--dropout: expected a probability below 1, got 1.5$"),
])  # fmt: skip
def test_options_that_do_not_go_together(flags: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build_language_model("stack_transformer_lm", DICTIONARY, *SMALL, *flags)


def test_cross_self_attention_has_no_stack() -> None:
    flags = "--stack-decoder-layers=sdpa,sup-3", "--cross-self-attention", "--no-cross-attention"
    with pytest.raises(ValueError, match=r"^--cross-self-attention: expected layers of sdpa, got --stack-"):
        build_translation_model("stack_transformer_tf_small", DICTIONARY, *flags)
