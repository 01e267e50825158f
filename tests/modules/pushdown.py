"""What tests of Pushdown Layers share."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn

from fairseq_stack.modules import (
    AttachmentHead,
    Parses,
    PushdownAttention,
    PushdownTransformer,
    attachment_head,
    parse_all,
)
from fairseq_stack.ops import StackTapeState
from tests.conftest import REPOSITORY
from tests.helpers import assert_normwise_close


def golden_parameters(golden: np.lib.npyio.NpzFile, prefix: str) -> dict[str, Tensor]:
    """The arrays of a golden file whose names have a prefix, which is removed."""
    return {name.removeprefix(prefix): torch.tensor(golden[name]) for name in golden if name.startswith(prefix)}


def check_gradients(model: nn.Module, expected: Mapping[str, Tensor], tolerance: float) -> None:
    """The gradients of all parameters, against those of the same names."""
    parameters = dict(model.named_parameters())
    assert parameters.keys() == expected.keys()
    for name, parameter in parameters.items():
        actual = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        assert_normwise_close(actual, expected[name], tolerance, name)


def random_attachments(batch_size: int, length: int) -> Tensor:
    """Parses of ROOT and length - 1 words, (B, T), each attachment drawn from all that are legal."""
    state, attachments = StackTapeState.initial(batch_size=batch_size), [torch.zeros(batch_size, dtype=torch.long)]
    for _ in range(1, length):
        attachments.append(torch.multinomial(state.legal().double(), 1).squeeze(1))
        state = state.step(attachments[-1])
    return torch.stack(attachments, 1)


def parse(model: PushdownTransformer, words: Tensor, *, beam_size: int, legal_only: bool = True) -> Parses:
    """The best parses of one string, (n,)."""
    (parses,) = parse_all(model, words[None], beam_size=beam_size, legal_only=legal_only)
    return parses


_NAMES = {
    "mlp": "query",
    "q_next_word_mlp": "query",
    "k_next_word_mlp": "own_key",
    "key_and_stack_mlp": "key",
    "key_and_stack_info_composer": "key",
    "data_to_qk": "projection",
    "beta": "depths",
    "depth_embed": "depths",
    "W": "bilinear.weight",
    "pos_to_pq_stack": "distances.projection",
}


def renamed(arrays: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The parameters of a head, or their gradients, under the names of the module's parameters."""
    arrays = dict(arrays)
    if "data_to_q_prime.weight" in arrays:
        halves = [arrays.pop(f"data_to_{half}_prime.weight") for half in "qk"]
        arrays["projection.weight"] = torch.cat(halves)
    results = {}
    for name, array in arrays.items():
        first, *rest = name.split(".")
        if len(rest) == 2:
            rest[0] = "first" if rest[0] == "0" else "second"
        results[".".join([_NAMES.get(first, first), *rest])] = array
    return results


def golden_head(arrays: Mapping[str, Tensor]) -> AttachmentHead:
    """The head that a golden file has the parameters of."""
    parameters = renamed(arrays)
    if "bilinear.weight" in parameters:
        head = attachment_head(len(parameters["bilinear.weight"]), None, "equations")
    else:
        released = "projection.bias" not in parameters
        doubled, model_size = parameters["projection.weight"].shape
        depths, depth_size = parameters["depths.weight"].shape
        head = attachment_head(
            model_size, depths, "released" if released else "figures", size=doubled // 2, depth_size=depth_size
        )
    head.double().load_state_dict(parameters)
    return head


TINY_MODEL = REPOSITORY / "tests" / "golden" / "pushdown" / "tiny_model.npz"
_NAMES_IN_LAYERS = {
    "ln1": "attention_norm",
    "ln2": "feedforward_norm",
    "c_attn": "attention.projection",
    "beta": "attention.depths",
    "c_proj": "attention.output",
}


def tied(num_symbols: int, size: int, bias: bool = False) -> tuple[nn.Embedding, nn.Linear]:
    """Embeddings, and an output layer of the same table."""
    embedding, output = nn.Embedding(num_symbols, size), nn.Linear(size, num_symbols, bias=bias)
    output.weight = embedding.weight
    return embedding, output


def tiny_model() -> PushdownTransformer:
    """The golden model: 2 layers, 2 heads; ROOT is 0 and the end of the sentence 1."""
    arrays = golden_parameters(np.load(TINY_MODEL), "")
    num_symbols, size = arrays["embedding"].shape
    embedding, output = tied(num_symbols, size)
    head = golden_head({name.removeprefix("head."): x for name, x in arrays.items() if name.startswith("head.")})
    depths = len(arrays["layers.0.beta.weight"])
    model = PushdownTransformer(
        embedding,
        output,
        [PushdownAttention(size, 2, depths) for _ in range(2)],
        head,
        root=0,
        end=1,
        feedforward_size=len(arrays["layers.0.ff.0.weight"]),
        max_positions=len(arrays["positions"]),
    ).double()
    parameters = {f"head.{name}": x for name, x in head.state_dict().items()}
    for name, array in arrays.items():
        if name.startswith("layers."):
            _, layer, kind, *rest = name.split(".")
            if kind == "ff":
                kind, rest[0] = "feedforward", {"0": "0", "1": "2"}[rest[0]]
            parameters[".".join(["layers", layer, _NAMES_IN_LAYERS.get(kind, kind), *rest])] = array
        elif name in ("embedding", "positions"):
            parameters[f"{name}.weight"] = array
            if name == "embedding":
                parameters["output.weight"] = array
        elif name.startswith("ln."):
            parameters[f"norm.{name.removeprefix('ln.')}"] = array
    model.load_state_dict(parameters)
    return model.eval()
