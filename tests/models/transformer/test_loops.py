"""Looped transformers: the golden values, and layers with the same weights that follow each other."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from fairseq_stack.errors import UserError
from fairseq_stack.models.plain import plain_model
from tests.helpers import assert_normwise_close, each_golden_file
from tests.models.building import (
    DICTIONARY,
    build_language_model,
    build_translation_model,
    make_dictionary,
    random_words,
    with_eos,
)
from tests.networks.agreement import randomized

SMALL = ("--decoder-embed-dim=8", "--decoder-ffn-embed-dim=12", "--decoder-attention-heads=2")


def golden_names(layer: str, size: int) -> dict[str, tuple[str, slice]]:
    """For each parameter of fairseq's layer of this size, that of torch's and the part of it."""
    names = {"linear1": "fc1", "linear2": "fc2", "norm1": "self_attn_layer_norm", "norm2": "final_layer_norm",
             "self_attn.out_proj": "self_attn.out_proj"}  # fmt: skip
    found = {}
    for kind in ("weight", "bias"):
        for theirs, ours in names.items():
            found[f"decoder.layers.{layer}.{ours}.{kind}"] = f"{layer}.{theirs}.{kind}", slice(None)
        for place, part in enumerate("qkv"):
            theirs = f"{layer}.self_attn.in_proj_{kind}"
            found[f"decoder.layers.{layer}.self_attn.{part}_proj.{kind}"] = (
                theirs,
                slice(size * place, size * place + size),
            )
    return found


@pytest.mark.parametrize("plain", [False, True], ids=["fairseq", "plain"])
@pytest.mark.parametrize("injection", ["plain", "injected"])
@each_golden_file("modern/looped_*.npz")
def test_golden_values(path: Path, injection: str, plain: bool) -> None:
    golden = {name: torch.from_numpy(np.asarray(array)) for name, array in np.load(path).items()}
    num_layers, (*batch_shape, size) = int(golden["layers"]), golden["inputs"].shape
    num_tokens = math.prod(batch_shape)
    model: Any = build_language_model(
        "stack_transformer_lm", make_dictionary(num_tokens),
        f"--stack-layers={num_layers}xsdpa", f"--stack-loops={int(golden['loops'])}", f"--decoder-embed-dim={size}",
        f"--decoder-ffn-embed-dim={len(golden['0.linear1.bias'])}",
        f"--decoder-attention-heads={int(golden['heads'])}", "--no-token-positional-embeddings", "--no-scale-embedding",
        "--no-decoder-final-norm", "--dropout=0", *["--loop-injection"] * (injection == "injected"),
    ).double()  # fmt: skip
    names = {name: of for layer in range(num_layers) for name, of in golden_names(str(layer), size).items()}
    with torch.no_grad():
        for name, (theirs, rows) in names.items():
            model.get_parameter(name).copy_(golden[theirs][rows])
        model.decoder.embed_tokens.weight[DICTIONARY.nspecial :] = golden["inputs"].flatten(0, 1)
    tokens = DICTIONARY.nspecial + torch.arange(num_tokens).view(batch_shape)
    if plain:
        model = plain_model(model)
        outputs = model.decoder.extend(tokens, None, None)[0]
    else:
        outputs = model.extract_features(tokens)[0]
    assert_normwise_close(outputs, golden[f"outputs_{injection}"], 1e-9)
    outputs.backward(golden["cotangent"])
    for name, (theirs, rows) in names.items():
        gradient = model.get_parameter(name).grad
        if name.endswith("k_proj.bias"):  # a softmax does not change with it
            assert gradient.abs().max() < 1e-12
            continue
        assert_normwise_close(gradient, golden[f"grad_{injection}_{theirs}"][rows], 1e-9, name)
    gradient = model.decoder.embed_tokens.weight.grad[DICTIONARY.nspecial :]
    assert_normwise_close(gradient.view(golden["inputs"].shape), golden[f"grad_{injection}_inputs"], 1e-9, "inputs")


def test_loops_are_layers_with_the_same_weights() -> None:
    """Values, and the gradients, which are the sums over the copies; with padding on either side."""
    lists = {"encoder": "sup-3,sdpa", "decoder": "sdpa,nd-2-2-3"}
    looped, longer = (
        build_translation_model(
            "stack_transformer_nd_small",
            DICTIONARY,
            *(f"--stack-{side}-layers={','.join([layers] * repeats)}" for side, layers in lists.items()),
            f"--stack-loops={3 // repeats}",
            "--dropout=0",
        )
        for repeats in (1, 3)
    )
    randomized(looped, 0.5)
    longer.double().eval().load_state_dict(
        {name.replace(f"layers.{k}.", f"layers.{k + 2 * loop}."): value
         for loop in range(3) for name, value in looped.state_dict().items() for k in range(2)
         if f"layers.{k}." in name or (".layers." not in name and k == loop == 0)}
    )  # fmt: skip
    source = with_eos([random_words(length) for length in (4, 6)], left_pad=True)
    target = with_eos([random_words(length) for length in (5, 2)], left_pad=False)
    outputs = [model(source, source.ne(DICTIONARY.pad()).sum(1), target)[0] for model in (looped, longer)]
    is_symbol = target.ne(DICTIONARY.pad())
    assert_normwise_close(outputs[0][is_symbol], outputs[1][is_symbol], 1e-12)
    cotangent = torch.randn_like(outputs[0]) * is_symbol.unsqueeze(-1)
    for output in outputs:
        output.backward(cotangent)
    for name, parameter in looped.named_parameters():
        assert_normwise_close(parameter.grad, _sum_over_copies(longer, name), 1e-9, name)


def _sum_over_copies(model: nn.Module, name: str) -> Tensor:
    names = {name, *(name.replace(f"layers.{k}.", f"layers.{k + 2 * loop}.") for loop in range(3) for k in range(2))}
    gradients = [model.get_parameter(copy).grad for copy in names]
    return torch.stack([gradient for gradient in gradients if gradient is not None]).sum(0)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--stack-loops=0"], "^--stack-loops: expected at least 1, got 0$"),
        (["--loop-injection"], "^--loop-injection has no effect: expected --stack-loops of at least 2$"),
        (["--stack-loops=2", "--decoder-layerdrop=0.1"], "^--stack-loops and --decoder-layerdrop cannot be combined$"),
    ],
)
def test_options_that_cannot_be(flags: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        build_language_model("stack_transformer_lm", DICTIONARY, *SMALL, *flags)
