"""Pushdown attention: golden values, and attention without depths."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from fairseq_stack.modules import PushdownAttention
from fairseq_stack.modules.pushdown_attention import Parametrization
from fairseq_stack.ops import stack_tape
from tests.helpers import assert_normwise_close, each_golden_file
from tests.modules.pushdown import check_gradients, golden_parameters, random_attachments

NAMES: dict[str, Parametrization] = {"eq6": "equations", "fig7": "figures", "released": "released"}


def parameters_of(golden: np.lib.npyio.NpzFile, prefix: str) -> dict[str, Tensor]:
    """The arrays of a parametrization, parameters or gradients, under the names of the module's parameters."""
    arrays = golden_parameters(golden, prefix)
    if "c_attn.weight" in arrays:
        names = {"c_attn": "projection", "c_proj": "output", "beta": "depths"}
        return {f"{names[name]}.{kind}": x for (name, kind), x in ((k.split("."), x) for k, x in arrays.items())}
    if "query.weight" in arrays:
        projection = torch.cat([arrays[f"{name}.weight"] for name in ("query", "key", "value")])
        return {
            "projection.weight": projection,
            "output.weight": arrays["output.weight"],
            "depths.weight": arrays["depth.weight"],
        }
    keys_and_values = arrays["data_to_kv.weight"]
    of_heads = keys_and_values.view(int(golden["heads"]), 2, -1, keys_and_values.size(1))
    return {
        "projection.weight": torch.cat([arrays["data_to_q.weight"], *of_heads.transpose(0, 1).flatten(1, 2)]),
        "output.weight": arrays["multi_head_merge.weight"],
        "depths.weight": arrays["depth_embed.weight"],
        "distances.projection.weight": arrays["pos_to_pq.weight"],
    }


@each_golden_file("pushdown/attention_*.npz")
def test_golden_pushdown_attention(path: Path) -> None:
    golden = np.load(path)
    parameters = parameters_of(golden, "param:")
    model = PushdownAttention(
        golden["x"].shape[2], int(golden["heads"]), len(parameters["depths.weight"]), NAMES[path.stem.split("_")[1]]
    ).double()
    model.load_state_dict(parameters)
    x, tape = torch.tensor(golden["x"]).requires_grad_(), torch.tensor(golden["tape"])
    assert_normwise_close(model.weights(x, tape), golden["weights"], 1e-9)
    y = model(x, tape)
    assert_normwise_close(y, golden["y"], 1e-9)
    (y * torch.tensor(golden["cotangent"])).sum().backward()
    check_gradients(model, parameters_of(golden, "grad:"), 1e-9)
    assert x.grad is not None
    assert_normwise_close(x.grad, golden["grad_x"], 1e-9)


def test_without_depths_it_is_attention() -> None:
    model, x = PushdownAttention(12, 3, None, "figures").double(), torch.randn(2, 7, 12, dtype=torch.float64)
    torch_attention = torch.nn.MultiheadAttention(12, 3, batch_first=True).double()
    torch_attention.load_state_dict(
        {
            "in_proj_weight": model.projection.weight,
            "in_proj_bias": model.projection.bias,
            "out_proj.weight": model.output.weight,
            "out_proj.bias": model.output.bias,
        }
    )
    mask = torch.ones(7, 7, dtype=torch.bool).triu(1)
    expected, _ = torch_attention(x, x, x, attn_mask=mask, need_weights=False)
    assert_normwise_close(model(x, stack_tape(random_attachments(2, 7))), expected, 1e-12)


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match=r"^num_heads: expected a divisor of the size 12, got 5$"):
        PushdownAttention(12, 5, 3)
    with pytest.raises(ValueError, match=r"^num_depths: expected at least 1, or None, got 0$"):
        PushdownAttention(12, 3, 0)
    with pytest.raises(ValueError, match=r"^parametrization: expected one of \('equations', .*, got 'eq6'$"):
        PushdownAttention(12, 3, 3, "eq6")  # type: ignore[arg-type]


def test_wrong_inputs() -> None:
    model, x, tape = PushdownAttention(12, 3, 3), torch.randn(2, 5, 12), torch.zeros(2, 5, 5, dtype=torch.long)
    for arguments, message in (
        ((x[0], tape), r"inputs: expected shape \(B, n, 12\), got \(5, 12\)"),
        ((x[..., :11], tape), r"inputs: expected shape \(B, n, 12\), got \(2, 5, 11\)"),
        ((x, tape[0]), r"tape: expected shape \(2, 5, 5\), got \(5, 5\)"),
    ):
        with pytest.raises(ValueError, match=f"^{message}$"):
            model(*arguments)
    with pytest.raises(ValueError, match=r"^inputs: expected shape \(2, 12\), got \(2, 1, 12\)$"):
        model.step(x[:, :1], model.initial_state(2), tape[:, 0, :1])
    with pytest.raises(ValueError, match=r"^row: expected shape \(2, 1\), got \(2, 5\)$"):
        model.step(x[:, 0], model.initial_state(2), tape[:, 0])
