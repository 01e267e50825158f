"""With the parameters of the authors' models, ours compute the authors' logits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary
from torch import Tensor, nn

from tests.helpers import assert_normwise_close, each_golden_file
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


@each_golden_file("models/lm_*.npz")
def test_language_model(path: Path) -> None:
    golden = np.load(path)
    dictionary = make_dictionary(3)
    model = build_language_model(
        "stack_transformer_lm",
        dictionary,
        f"--stack-layers={layer_list(golden, 'decoder')}",
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


@each_golden_file("models/mt_*.npz")
@pytest.mark.parametrize("left_pad", [False, True], ids=["pads-right", "pads-left"])
def test_translation_model(path: Path, left_pad: bool) -> None:
    golden = np.load(path)
    dictionary = make_dictionary(16)
    model = build_translation_model(
        "stack_transformer",
        dictionary,
        f"--stack-encoder-layers={layer_list(golden, 'encoder')}",
        f"--stack-decoder-layers={layer_list(golden, 'decoder')}",
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


def layer_list(golden: np.lib.npyio.NpzFile, side: str) -> str:
    """The layers of an encoder or a decoder."""
    kinds: list[str] = []
    while True:
        prefix = f"parameters/{side}.layers.{len(kinds)}.attention."
        parameters = {key.removeprefix(prefix): golden[key] for key in golden if key.startswith(prefix)}
        if not parameters:
            return ",".join(kinds)
        kinds.append(layer_kind(parameters))


def layer_kind(parameters: dict[str, np.ndarray]) -> str:
    """The kind and the sizes of an attention layer, from the shapes of its parameters."""
    if "in_proj_weight" in parameters:
        return "sdpa"
    num_actions, value_size = len(parameters["actions.weight"]), len(parameters["values.weight"])
    if num_actions == 3:
        return f"sup-{value_size}"
    num_tops = parameters["output.weight"].shape[1] // value_size  # Q * S; there are Q * S * (2 * Q * S + Q) actions
    num_states = num_actions // num_tops - 2 * num_tops
    return f"nd-{num_states}-{num_tops // num_states}-{value_size}"


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
