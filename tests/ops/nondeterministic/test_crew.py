"""Several threads that share one sequence compute the same bits as one thread."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import _native, nondeterministic_stack
from fairseq_stack.ops._native import availability, crew_size
from tests.helpers import threads

SIZES = [(1, 1, 1), (2, 2, 2), (16, 3, 3), (17, 1, 2), (63, 2, 3), (100, 2, 2)]  # n, Q, S
LOG_WEIGHTS = ["near", "too far apart for float32", "masked", "undefined"]


@pytest.fixture(params=["PyTorch's threads", "own threads"])
def team(request: pytest.FixtureRequest) -> Iterator[None]:
    compiled, reason = availability()
    if compiled is None:
        pytest.skip(reason)
    if request.param == "own threads":
        compiled.use_team(None)
    yield
    compiled.use_team(_native.torch_team())


def inputs(sizes: tuple[int, int, int], log_weights: str, dtype: torch.dtype) -> list[Tensor]:
    """Two sequences, of which the second has log weights of the kind."""
    torch.manual_seed(0)
    length, *top = sizes
    logits = [torch.randn(2, length, *top, *target, dtype=dtype) for target in (top, top, top[:1])]
    for x in logits:
        if "apart" in log_weights:
            x[1] *= 20 if "32" in log_weights else 300
        if log_weights == "masked":
            x[1].masked_fill_(torch.rand(x[1].shape) < 0.4, -torch.inf)
        if log_weights == "undefined":
            x[1, length // 2] = torch.nan
    values, bottom = torch.randn(2, length, 3, dtype=dtype), torch.randn(3, dtype=dtype)
    return [x.requires_grad_() for x in (*logits, values, bottom)]


def results(leaves: list[Tensor], crew: int) -> list[Tensor]:
    """W and gradients. PyTorch has one thread, since its matrix products depend on the number of threads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairseq_stack.ops.nondeterministic.native.crew_size", lambda *_: crew)
        _, weights = nondeterministic_stack(*leaves, backend="native", return_weights=True)
        cotangent = torch.linspace(-1, 1, weights.numel(), dtype=weights.dtype).view_as(weights)
        return [weights, *torch.autograd.grad(weights, leaves[:3], cotangent)]


def check(sizes: tuple[int, int, int], log_weights: str, dtype: torch.dtype, crews: tuple[int, ...]) -> None:
    leaves = inputs(sizes, log_weights, dtype)
    with threads(1):
        alone = results(leaves, 1)
        for crew in crews:
            for one, other in zip(results(leaves, crew), alone, strict=True):
                assert torch.equal(one.nan_to_num(7.0), other.nan_to_num(7.0)), f"{crew} threads"


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("log_weights", LOG_WEIGHTS)
def test_same_bits(log_weights: str, dtype: torch.dtype) -> None:
    for sizes in SIZES:
        check(sizes, log_weights, dtype, (2, 5))


@pytest.mark.usefixtures("team")
@pytest.mark.parametrize("log_weights", ["near", "too far apart for float64"])
def test_same_bits_in_all_threads(log_weights: str) -> None:
    check((33, 2, 2), log_weights, torch.float32, (2, 3, 7))


@pytest.mark.usefixtures("instruction_set")
def test_same_bits_with_each_instruction_set() -> None:
    """Tiles have other sizes there, and may be smaller or larger than blocks of columns."""
    for dtype in (torch.float32, torch.float64):
        check((67, 2, 3), "near", dtype, (2, 5))


@pytest.mark.hostile
@pytest.mark.usefixtures("team")
def test_same_bits_again_and_again() -> None:
    """Threads that wait for each other in all orders."""
    check((63, 2, 3), "near", torch.float32, tuple(range(2, 10)) * 25)


def test_threads_share_a_sequence_where_it_pays() -> None:
    """Where there are fewer sequences than threads, and each is long enough for its threads to wait for each other."""
    with threads(4), pytest.MonkeyPatch.context() as patch:
        patch.setattr(_native, "WORTH_CREW", 1000)
        assert crew_size(parts=1, work=1000, most=8) == 4
        assert crew_size(parts=3, work=1000, most=2) == 2
        assert crew_size(parts=3, work=999, most=8) == 1
        assert crew_size(parts=4, work=1000, most=8) == 1
    with threads(1):
        assert crew_size(parts=1, work=10**9, most=8) == 1
