"""With the parameters of the authors' models, ours compute the authors' logits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary
from torch import Tensor, nn

from tests.helpers import assert_normwise_close
from tests.models.building import build_language_model, build_translation_model, make_dictionary

OUR_NAMES = {
    "cross_attention_norm": "encoder_attn_layer_norm",
    "cross_attention": "encoder_attn",
    "attention_norm": "self_attn_layer_norm",
    "feedforward_norm": "final_layer_norm",
    "feedforward.0": "fc1",
    "feedforward.1": "fc2",
    "final_norm": "layer_norm",
    "decoder.output.": "decoder.output_projection.",
    "embedding": "embed_tokens.weight",
}

COMMON_FLAGS = (
    "--compact-vocab",
    "--output-bias",
    "--stack-positions=interleaved",
    "--stack-value-activation=released",
)

LANGUAGE_MODELS = {"tf": "3xsdpa", "sup": "sdpa,sup-8,sdpa", "nd": "sdpa,nd-2-3-5,sdpa"}

TRANSLATION_MODELS = {
    "tf": ("2xsdpa", "2xsdpa"),
    "sup": ("sdpa,sup-12,sdpa", "sdpa,sup-10,sdpa"),
    "nd": ("sdpa,nd-2-3-4,sdpa", "sdpa,nd-3-2-3,sdpa"),
}


@pytest.mark.parametrize("kind", LANGUAGE_MODELS)
def test_language_model(kind: str, reference_data: Path) -> None:
    golden = np.load(reference_data / "golden" / "models" / f"lm_{kind}.npz")
    dictionary = make_dictionary(3)
    model = build_language_model(
        "stack_transformer_lm",
        dictionary,
        f"--stack-layers={LANGUAGE_MODELS[kind]}",
        "--decoder-embed-dim=16",
        "--decoder-ffn-embed-dim=32",
        "--decoder-attention-heads=4",
        *COMMON_FLAGS,
    )
    load_golden_parameters(model, golden)
    symbols = [dictionary.index(f"w{symbol}") for symbol in range(3)]
    tokens = translate_tokens(golden["tokens"], symbols)
    beginning = torch.full((len(tokens), 1), dictionary.eos())
    with torch.no_grad():
        logits, _ = model(torch.cat([beginning, tokens], dim=1))
    assert_normwise_close(logits[..., [*symbols, dictionary.eos()]], golden["logits"], 1e-9, "logits")
    assert_impossible_symbols_have_no_weight(logits, [*symbols, dictionary.eos()])


@pytest.mark.parametrize("kind", TRANSLATION_MODELS)
@pytest.mark.parametrize("left_pad", [False, True], ids=["pads-right", "pads-left"])
def test_translation_model(kind: str, left_pad: bool, reference_data: Path) -> None:
    golden = np.load(reference_data / "golden" / "models" / f"mt_{kind}.npz")
    dictionary = make_dictionary(16)
    encoder_layers, decoder_layers = TRANSLATION_MODELS[kind]
    model = build_translation_model(
        "stack_transformer",
        dictionary,
        f"--stack-encoder-layers={encoder_layers}",
        f"--stack-decoder-layers={decoder_layers}",
        *(f"--{side}-{option}" for side in ("encoder", "decoder") for option in ("embed-dim=16", "ffn-embed-dim=64",
          "attention-heads=4", "normalize-before")),
        *COMMON_FLAGS,
    )  # fmt: skip
    load_golden_parameters(model, golden)
    # The authors' symbols 0..16 are our <unk> and 16 words; 17 is EOS and BOS, 18 padding.
    symbols = [dictionary.unk(), *(dictionary.index(f"w{symbol}") for symbol in range(16))]
    entries = [*symbols, dictionary.eos(), dictionary.pad()]
    source = translate_tokens(golden["source"], entries)
    if left_pad:
        source = pads_to_the_left(source, dictionary)
    target = translate_tokens(golden["target_in"], entries)
    with torch.no_grad():
        logits, _ = model(source, torch.from_numpy(golden["source_lengths"]), target)
    assert_impossible_symbols_have_no_weight(logits, [*symbols, dictionary.eos()])
    for row, length in enumerate(golden["target_lengths"]):
        ours = logits[row, :length][:, [*symbols, dictionary.eos()]]
        assert_normwise_close(ours, golden["logits"][row, :length], 1e-9, f"logits of sentence {row}")


def load_golden_parameters(model: nn.Module, golden: np.lib.npyio.NpzFile) -> None:
    """Load the authors' parameters into ours, all of them, in float64, and switch to evaluation."""
    model.double().eval()
    parameters = dict(model.named_parameters())
    for name, value in golden_parameters(golden):
        parameter = parameters.pop(name)
        if name.endswith("embed_tokens.weight") and len(value) == len(parameter) + 1:
            value = value[:-1]  # The authors' embeddings have a last row for padding.
        assert parameter.shape == value.shape, name
        parameter.data.copy_(value)
    assert not parameters, f"not in the golden model: {list(parameters)}"


def golden_parameters(golden: np.lib.npyio.NpzFile) -> Iterator[tuple[str, Tensor]]:
    for key in golden:
        if not key.startswith("parameters/"):
            continue
        name, value = key.removeprefix("parameters/"), torch.from_numpy(golden[key])
        is_stack = any(part in name for part in (".actions.", ".values.", ".output.weight", "bottom_logits"))
        for theirs, ours in OUR_NAMES.items():
            name = name.replace(theirs, ours)
        is_stack = is_stack and ".attention." in name
        name = name.replace(".attention.", ".self_attn.attention." if is_stack else ".self_attn.")
        if "in_proj_" in name:
            for letter, part in zip("qkv", value.chunk(3), strict=True):
                yield name.replace("in_proj_", f"{letter}_proj."), part
        elif is_stack and ".actions." in name and len(value) == 3:
            yield name, value[[0, 2, 1]]  # Theirs: push, pop, no-op.
        else:
            yield name, value


def translate_tokens(tokens: np.ndarray, entries: list[int]) -> Tensor:
    return torch.tensor(entries)[torch.from_numpy(tokens)]


def pads_to_the_left(tokens: Tensor, dictionary: Dictionary) -> Tensor:
    rows = []
    for row in tokens:
        real = row[row.ne(dictionary.pad())]
        rows.append(torch.cat([row.new_full((len(row) - len(real),), dictionary.pad()), real]))
    return torch.stack(rows)


def assert_impossible_symbols_have_no_weight(logits: Tensor, possible: list[int]) -> None:
    impossible = [index for index in range(logits.size(-1)) if index not in possible]
    assert logits[..., impossible].eq(-torch.inf).all()
