"""Models that begin with GPT-2's weights compute what GPT-2 computes, and refuse the weights of other models."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from fairseq_stack.errors import UserError
from fairseq_stack.ops import stack_tape
from tests.gpt2_folders import rows_of, save_gpt2, some_pieces
from tests.helpers import assert_normwise_close
from tests.models.building import build_language_model, build_pushdown_model

DICTIONARY = some_pieces()
END = DICTIONARY.eos()
OUTPUTS = [END, *range(4, len(DICTIONARY))]
"""What can occur: all but <s>, <pad> and <unk>."""


def build(layers: str, folder: Path, *flags: str, syntactic: bool = False) -> Any:
    """In float64 and evaluation mode; ``pushdown_transformer_lm`` if a layer reads the tape or ``syntactic`` is set."""
    given = (f"--init-from-gpt2={folder}", f"--stack-layers={layers}", "--tokens-per-sample=11", *flags)
    if "pushdown" in layers or syntactic:
        return build_pushdown_model("pushdown_transformer_lm", DICTIONARY, *given).double().eval()
    return build_language_model("stack_transformer_lm", DICTIONARY, *given).double().eval()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gpt2")


@pytest.fixture(scope="module")
def gpt2(folder: Path) -> Any:
    return save_gpt2(folder, n_inner=20).double()


def sentences() -> Tensor:
    tokens = torch.randint(4, len(DICTIONARY), (3, 9))
    tokens[:, 0] = END
    return tokens


def of_gpt2(gpt2: Any, tokens: Tensor) -> Tensor:
    """GPT-2's log-probabilities of what can occur, (B, n, V), renormalised."""
    rows = rows_of(DICTIONARY)
    ids = torch.tensor([rows[OUTPUTS.index(token)] for token in tokens.flatten().tolist()]).view_as(tokens)
    return gpt2(ids).logits[:, :, rows].log_softmax(2)


BESIDE = "sdpa+strat-4,sdpa+nd-2-2-3,{0}+sup-4"
CASES = {
    "stack-transformer": ("3xsdpa", False),
    "no-tape": ("3xsdpa", True),
    "pushdown": ("sdpa,2xpushdown", True),
    "stacks-in-stack-transformer": (BESIDE.format("sdpa"), False),
    "stacks-in-pushdown": (BESIDE.format("pushdown"), True),
}


@pytest.mark.parametrize(("layers", "syntactic"), CASES.values(), ids=CASES)
def test_logits_are_those_of_gpt2(layers: str, syntactic: bool, folder: Path, gpt2: Any) -> None:
    """In a whole sentence and step by step, with what the dictionary lacks left out."""
    model, tokens = build(layers, folder, *["--zero-depths"] * ("pushdown" in layers), syntactic=syntactic), sentences()
    tape = {"tape": stack_tape(torch.tensor([[0, 1, 1, 3, 3, 2, 6, 7, 6]] * 3))} if syntactic else {}
    logits, _ = model(tokens, **tape)
    expected = of_gpt2(gpt2, tokens)
    assert logits[:, :, [0, 1, 3]].eq(-torch.inf).all()
    assert_normwise_close(logits[:, :, OUTPUTS].log_softmax(2), expected, 1e-12)
    incremental: dict[str, dict[str, Any]] = {}
    for length in range(1, tokens.size(1) + 1):
        step, _ = model.decoder(tokens[:, :length], incremental_state=incremental)
        assert_normwise_close(step[:, -1, OUTPUTS].log_softmax(1), expected[:, length - 1], 1e-12)


@pytest.mark.parametrize("layers", [BESIDE.format("sdpa"), BESIDE.format("pushdown")], ids=["sdpa", "pushdown"])
def test_gates_of_stacks_open(layers: str, folder: Path, gpt2: Any) -> None:
    """Gradients reach the closed gates alone, and the stacks behind open ones; decoding step by step is the same."""
    model, tokens = build(layers, folder), sentences()
    named = dict(model.named_parameters())
    gates = [name for name in named if name.endswith("gate.weight")]
    stacks = [name for name in named if ".stack." in name and not name.endswith("bottom_logits")]
    assert len(gates) == 3 and len(stacks) >= 9
    for is_open in (False, True):
        model.zero_grad()
        model(tokens)[0][:, :, OUTPUTS].log_softmax(2)[:, :, 1].sum().backward()
        assert all(named[name].grad.abs().max() > 0 for name in gates)
        assert all((named[name].grad.abs().max() > 0) == is_open for name in stacks)
        for name in gates:
            named[name].data.normal_()
    logits = model(tokens)[0]
    assert (logits[:, :, OUTPUTS].log_softmax(2) - of_gpt2(gpt2, tokens)).abs().max() > 1e-3
    incremental: dict[str, dict[str, Any]] = {}
    rows = torch.arange(3)
    for length in range(1, tokens.size(1) + 1):
        if length == 4:
            rows = torch.tensor([2, 0, 0])
            model.decoder.reorder_incremental_state_scripting(incremental, rows)
        step, _ = model.decoder(tokens[rows, :length], incremental_state=incremental)
        assert_normwise_close(step[:, -1, OUTPUTS], logits[rows, length - 1][:, OUTPUTS], 1e-12)


def test_tables_of_depths_begin_at_random_unless_told(folder: Path, gpt2: Any) -> None:
    model, tokens = build("sdpa,2xpushdown", folder), sentences()
    tape = stack_tape(torch.tensor([[0, 1, 1, 3, 3, 2, 6, 7, 6]] * 3))
    assert (model(tokens, tape=tape)[0][:, :, OUTPUTS].log_softmax(2) - of_gpt2(gpt2, tokens)).abs().max() > 1e-6
    with pytest.raises(UserError, match=r"^--zero-depths has no effect: expected pushdown in --stack-layers 3xsdpa$"):
        build("3xsdpa", folder, "--zero-depths", syntactic=True)


@pytest.mark.parametrize(
    ("settings", "flags", "message"),
    [
        ({"model_type": "gpt_neo"}, (), r'config\.json: model_type: expected "gpt2", got "gpt_neo"$'),
        ({"activation_function": "relu"}, (), 'activation_function: expected "gelu_new" or "gelu_pytorch_tanh", got'),
        ({"scale_attn_by_inverse_layer_idx": True}, (), "scale_attn_by_inverse_layer_idx: expected false, got true$"),
        ({"tie_word_embeddings": False}, (), "tie_word_embeddings: expected true, got false$"),
        ({"n_head": None}, (), r"config\.json: n_head: expected a whole number, got None$"),
        ({"n_positions": 10**12}, (), r"wpe\.weight: expected the shape \(1000000000000, 12\), got \(11, 12\)$"),
        ({"quantization_config": {}}, (), "quantization_config: expected null, got {}$"),
        ({"n_inner": 24}, (), r"safetensors: h\.0\.mlp\.c_fc\.weight: expected the shape \(12, 24\), got \(12, 20\)$"),
        ({"n_layer": 4}, ("--stack-layers=4xsdpa",), r"expected a tensor h\.3\.ln_1\.weight, of shape \(12,\)$"),
        ({}, ("--stack-layers=2xsdpa",), r"^--stack-layers: expected 3 layers, the n_layer of .*config\.json, got 2$"),
        ({}, ("--tokens-per-sample=12",), "^--tokens-per-sample: expected at most 11, the n_positions of .*, got 12$"),
        (
            {},
            ("--compact-vocab", "--compact-vocab-unk"),
            "^--compact-vocab-unk and --init-from-gpt2 cannot be combined",
        ),
        ({}, ("--scale-fc",), "^--scale-fc and --init-from-gpt2 cannot be combined$"),
        ({}, ("--init-from-gpt2=nowhere",), "^--init-from-gpt2 nowhere: expected a folder with the file config"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict | tuple) else "",
)
def test_what_is_not_this_gpt2(
    settings: dict[str, Any], flags: tuple[str, ...], message: str, folder: Path, gpt2: Any, tmp_path: Path
) -> None:
    """Each is refused in one line."""
    shutil.copytree(folder, tmp_path / "other")
    config = tmp_path / "other" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), **settings}))
    with pytest.raises(UserError, match=message) as caught:
        build("3xsdpa", tmp_path / "other", *flags)
    assert "\n" not in str(caught.value)


def test_output_rows_of_their_own(folder: Path, gpt2: Any, tmp_path: Path) -> None:
    """transformers computes logits with them, whatever the configuration says."""
    from safetensors.torch import load_file, save_file

    shutil.copytree(folder, tmp_path / "other")
    path = tmp_path / "other" / "model.safetensors"
    weights = load_file(path)
    weights["lm_head.weight"] = weights["transformer.wte.weight"].clone()
    save_file(weights, path)
    build("3xsdpa", path.parent)
    weights["lm_head.weight"][0, 0] += 1
    save_file(weights, path)
    with pytest.raises(UserError, match=r"safetensors: lm_head\.weight: expected the values of wte\.weight, with wh"):
        build("3xsdpa", path.parent)


def test_rows_are_those_of_the_tokenizer_that_cut_the_corpus(folder: Path, gpt2: Any, tmp_path: Path) -> None:
    """``prepare treebank`` prefers ``tokenizer.json`` to ``vocab.json`` as well."""
    shutil.copytree(folder, tmp_path / "other")
    vocabulary = tmp_path / "other" / "vocab.json"
    rows = json.loads(vocabulary.read_text())
    (tmp_path / "other" / "tokenizer.json").write_text(json.dumps({"model": {"vocab": rows}}))
    vocabulary.write_text(json.dumps(dict.fromkeys(rows, 0)))
    expected = build("3xsdpa", folder).decoder.embed_tokens.weight
    assert torch.equal(build("3xsdpa", tmp_path / "other").decoder.embed_tokens.weight, expected)


def test_files_of_another_form(folder: Path, gpt2: Any, tmp_path: Path) -> None:
    path = tmp_path / "other"
    for name, content, message in (
        ("tokenizer.json", "{}", "expected GPT-2's pieces, of the type BPE, in model.vocab"),
        ("tokenizer.json", '{"model": {"vocab": [["a", 0.5]]}}', "expected GPT-2's pieces"),
        ("config.json", "[]", "expected an object, got list$"),
    ):
        shutil.copytree(folder, path, dirs_exist_ok=True)
        (path / name).write_text(content)
        with pytest.raises(UserError, match=message):
            build("3xsdpa", path)


@pytest.mark.parametrize("flags", [("--decoder-layerdrop=0.9",), ("--stack-loops=2",)], ids=" ".join)
def test_every_layer_gets_its_weights(flags: tuple[str, ...], folder: Path, gpt2: Any) -> None:
    expected, layers = (build("3xsdpa", folder, *given).decoder.layers for given in ((), flags))
    for one, other in zip(expected.children(), layers.children(), strict=True):
        assert torch.equal(one.self_attn.q_proj.weight, other.self_attn.q_proj.weight)


def test_without_safetensors(folder: Path, gpt2: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(UserError, match=r"^this needs safetensors, which is not installed; install it with: "):
        build("3xsdpa", folder)


def test_symbols_that_gpt2_lacks(folder: Path, gpt2: Any) -> None:
    dictionary = some_pieces()
    dictionary.add_symbol("ĠŁ")
    flags = (f"--init-from-gpt2={folder}", "--stack-layers=3xsdpa", "--tokens-per-sample=11")
    with pytest.raises(
        UserError, match=r"^.*vocab\.json lacks 'ĠŁ', a symbol of the dictionary: expected the pieces of"
    ):
        build_language_model("stack_transformer_lm", dictionary, *flags)
