"""Scores by depth: the lean forms against the ones with a vector for each pair of tokens, and their memory."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from fairseq_stack.ops.depth_scores import composed_scores, depth_scores
from fairseq_stack.ops.depth_scores.pytorch import composed_scores_pytorch
from fairseq_stack.ops.depth_scores.reference import composed_scores_reference, depth_scores_reference
from tests.helpers import assert_agree, assert_normwise_close, peak_of_bytes

SIZES = [(1, 1, 1, 1), (2, 7, 7, 3), (3, 2, 6, 4), (2, 5, 5, 1), (2, 0, 0, 3), (0, 4, 4, 2)]


def leaves(*shapes: tuple[int, ...]) -> list[Tensor]:
    return [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(("batch", "m", "n", "depths"), SIZES)
def test_depth_scores(batch: int, m: int, n: int, depths: int, shared: bool) -> None:
    queries, table = leaves((batch, 2, m, 5), (depths, 5) if shared else (2, depths, 5))
    tape = torch.randint(depths, (batch, m, n))
    expected = depth_scores_reference(queries, table.expand(2, -1, -1), tape)
    assert_agree(depth_scores(queries, table, tape), expected, (queries, table))


@pytest.mark.parametrize(("batch", "m", "n", "depths"), SIZES)
def test_composed_scores(batch: int, m: int, n: int, depths: int) -> None:
    inputs = queries, keys, table = leaves((batch, m, 5), (batch, n, 5), (depths, 5))
    tape = torch.randint(depths, (batch, m, n))
    expected = composed_scores_reference(queries, keys, table, tape)
    for compute in (composed_scores, composed_scores_pytorch):
        assert_agree(compute(queries, keys, table, tape), expected, inputs)


def test_depths_beyond_the_table() -> None:
    queries, keys, table = leaves((2, 4, 5), (2, 4, 5), (3, 5))
    tape = torch.randint(9, (2, 4, 4))
    clamped = tape.clamp(max=2)
    assert not torch.equal(tape, clamped)
    assert torch.equal(composed_scores(queries, keys, table, tape), composed_scores(queries, keys, table, clamped))
    heads = queries.unsqueeze(1)
    assert torch.equal(depth_scores(heads, table, tape), depth_scores(heads, table, clamped))


def test_half_precision() -> None:
    """Composed scores are computed in float32 even under autocast."""
    queries, keys, table = (x.detach().bfloat16() for x in leaves((2, 4, 5), (2, 4, 5), (3, 5)))
    tape = torch.randint(3, (2, 4, 4))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        actual = composed_scores(queries, keys, table, tape)
    assert actual.dtype == torch.bfloat16
    expected = composed_scores_reference(queries.float(), keys.float(), table.float(), tape)
    assert_normwise_close(actual, expected, 2**-8)
    of_wide_table = depth_scores(queries.unsqueeze(1), table.float(), tape)  # as autocast leaves parameters
    assert torch.equal(of_wide_table, depth_scores(queries.unsqueeze(1), table, tape))


@pytest.mark.parametrize("name", ["depth_scores", "composed_scores"])
def test_memory(name: str) -> None:
    """O(n^2) for all pairs, and not a vector for each; and O(n D) for the scores by depth."""
    n, depths, size = 128, 8, 32
    tape = torch.randint(depths, (1, n, n))
    queries = torch.randn(1, n, size, requires_grad=True)
    keys, table = torch.randn(1, n, size, requires_grad=True), torch.randn(depths, size, requires_grad=True)

    def lean() -> None:
        if name == "depth_scores":
            depth_scores(queries.unsqueeze(1), table, tape).sum().backward()
        else:
            composed_scores(queries, keys, table, tape).sum().backward()

    def naive() -> None:
        if name == "depth_scores":
            depth_scores_reference(queries.unsqueeze(1), table.unsqueeze(0), tape).sum().backward()
        else:
            composed_scores_reference(queries, keys, table, tape).sum().backward()

    assert peak_of_bytes(lean) < 8 * n * n * 5 < peak_of_bytes(naive) / 3


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda q, e, w: depth_scores(q[:, 0], e, w), "queries: expected shape (B, H, m, s), got (2, 5, 3)"),
        (lambda q, e, w: depth_scores(q, e[:, :2], w), "table: expected shape (H, D, s) with H = 2, "),
        (lambda q, e, w: depth_scores(q, e, w[:, :4]), "tape: expected a LongTensor of shape (2, 5, n), got "),
        (lambda q, e, w: depth_scores(q, e, w.int()), "tape: expected a LongTensor of shape (2, 5, n), got "),
        (lambda q, e, w: composed_scores(q[:, 0], q[:, 1], e[:, :2], w), "depths: expected shape (D, h) with "),
        (lambda q, e, w: composed_scores(q[:, 0], q[:, 1], e, w[:, :, :4]), "tape: expected a LongTensor of "),
        (lambda q, e, w: depth_scores(q, e, w - 1), "tape: expected depths from 0 on, got -1"),
        (lambda q, e, w: composed_scores(q[:, 0], q[:, 1], e, w - 1), "tape: expected depths from 0 on, got -1"),
        (lambda q, e, w: composed_scores(q[:, 0, :1], q[:, 1], e, w[:, :1] - 2), "tape: expected depths from 0 on, "),
    ],
    ids=["queries", "table", "tape", "dtype", "depths", "keys", "negative", "composed", "one-query"],
)
def test_wrong_arguments(call: Callable[[Tensor, Tensor, Tensor], object], problem: str) -> None:
    queries, table, tape = torch.randn(2, 2, 5, 3), torch.randn(4, 3), torch.zeros(2, 5, 5, dtype=torch.long)
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}"):
        call(queries, table, tape)
