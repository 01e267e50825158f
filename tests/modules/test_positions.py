from __future__ import annotations

import math

import pytest
import torch

from fairseq_stack.modules import InterleavedSinusoidalPositions
from fairseq_stack.modules.positions import SinusoidTable, sinusoids
from tests.helpers import assert_normwise_close

PAD = 1


@pytest.mark.parametrize("size", [1, 2, 7, 8])
def test_follows_the_formula(size: int) -> None:
    positions = InterleavedSinusoidalPositions(size, PAD, 100).double()
    encodings = positions(torch.full((1, 5), 9))[0]
    expected = [
        [
            (math.sin if i % 2 == 0 else math.cos)(position / 10000 ** (2 * (i // 2) / size))
            for i in range(size)
        ]
        for position in range(5)
    ]  # fmt: skip
    assert_normwise_close(encodings, torch.tensor(expected, dtype=torch.float64), 1e-14)


def test_padding_counts_on_neither_side() -> None:
    positions = InterleavedSinusoidalPositions(8, PAD, 100)
    plain = positions(torch.tensor([[5, 6, 7]]))
    left, right = positions(torch.tensor([[PAD, PAD, 5, 6, 7], [5, 6, 7, PAD, PAD]]))
    assert torch.equal(left[2:], plain[0])
    assert torch.equal(right[:3], plain[0])
    assert left[:2].count_nonzero() == right[3:].count_nonzero() == 0


def test_incremental_decoding_gets_the_last_position_only() -> None:
    positions = InterleavedSinusoidalPositions(8, PAD, 100)
    tokens = torch.tensor([[2, 5, 6], [PAD, 2, 5]])
    assert torch.equal(positions(tokens, incremental_state={}), positions(tokens)[:, -1:])


def test_follows_the_dtype_of_the_module_without_losing_precision() -> None:
    positions = InterleavedSinusoidalPositions(8, PAD, 100)
    tokens = torch.full((1, 90), 9)
    short, single = positions(tokens[:, :3]), positions(tokens)
    assert torch.equal(single[:, :3], short) and positions.state_dict() == {}
    assert single.dtype == torch.float32
    double = positions.double()(tokens)
    assert double.dtype == torch.float64
    assert_normwise_close(double[0, 89, 0], math.sin(89), 1e-14)


def test_the_table_does_not_grow_where_only_the_dtype_changes() -> None:
    table = SinusoidTable(sinusoids, 4)
    for _ in range(3):
        assert table.rows(5, torch.zeros(1)).shape == table.rows(5, torch.zeros(1, dtype=torch.float64)).shape == (5, 4)


def test_a_sequence_that_is_too_long_is_an_error() -> None:
    positions = InterleavedSinusoidalPositions(8, PAD, 4)
    assert positions(torch.tensor([[PAD, PAD, 5, 6, 7, 8]])).shape == (1, 6, 8)
    assert positions(torch.empty(2, 0, dtype=torch.long)).shape == (2, 0, 8)
    with pytest.raises(ValueError, match="5 symbols is longer than the 4 positions"):
        positions(torch.full((2, 5), 9))
