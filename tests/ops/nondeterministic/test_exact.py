"""All backends return the numbers that are nearest to the true ones, which are known in integers.

With log weights of 0, log 2 and -inf, weights of sets of runs are integers, up to powers of two. As long as these have
no more binary digits than a mantissa, a backend that works with real numbers makes no error before the quotient W: the
exponential of log 2 is exactly 2 if log 2 has the precision in which it is taken.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import nondeterministic_stack
from fairseq_stack.ops.nondeterministic import native
from fairseq_stack.ops.nondeterministic._log_weights import join_transitions
from tests.helpers import INSTRUCTION_SETS, use_backend, use_instruction_set
from tests.ops import exact
from tests.ops.exact import MANTISSA, as_integers, digits, quotients
from tests.ops.stacks import FAST, Way, ways


class Runs(NamedTuple):
    """Transition weights with a first axis of size 1, and what follows from them in integers."""

    push: Tensor
    replace: Tensor
    pop: Tensor
    tops: exact.Integers
    totals: exact.Integers
    weights: Tensor  # W, (1, n, n + 1, Q, S)

    def inputs(self, dtype: torch.dtype) -> list[Tensor]:
        """The arguments of the stack: unit vectors are pushed, so that readings are W."""
        vectors = torch.eye(len(self.totals) + 1, dtype=dtype)
        log_weights = [x.double().log().to(dtype) for x in self[:3]]
        return [*log_weights, vectors[None, 1:], vectors[0]]


@functools.cache
def runs(
    length: int, num_states: int, num_symbols: int, forbidden: float, quiet: int = 0, twos: float = 0.5, seed: int = 0
) -> Runs:
    """Random transitions with weights of 0, 1 and 2.

    Args:
        forbidden: the share of weights that are 0.
        quiet: how many steps follow on each such step in which one transition out of each configuration has the weight
            1, and no other is possible.
        twos: the share of the weights in the other steps, but for those that are 0, that are 2.
        seed: of the random numbers.
    """
    generator = torch.Generator().manual_seed(seed)
    size = num_states * num_symbols
    shape = length, size, 2 * size + num_states
    weights = 1 + (torch.rand(shape, generator=generator) < twos).long()
    weights.masked_fill_(torch.rand(shape, generator=generator) < forbidden, 0)
    only = torch.nn.functional.one_hot(torch.randint(shape[2], shape[:2], generator=generator), shape[2])
    is_quiet = torch.arange(length) % (quiet + 1) != 0
    weights = torch.where(is_quiet[:, None, None], only, weights).unflatten(1, (num_states, num_symbols))
    push, replace, pop = weights.split([size, size, num_states], -1)
    push, replace = (x.unflatten(-1, (num_states, num_symbols)) for x in (push, replace))
    tops, totals = exact.run_weights(*(as_integers(x) for x in (push, replace, pop)))
    nearest = quotients(tops, totals.reshape(-1, 1, 1, 1))
    return Runs(push[None], replace[None], pop[None], tops, totals, nearest[None])


CASES = {
    "n0": (0, 2, 2, 0.0),
    "n1": (1, 2, 3, 0.3),
    "n2": (2, 3, 2, 0.3),
    "n16": (16, 2, 2, 0.4),
    "n17": (17, 1, 2, 0.3),
    "n63": (63, 1, 2, 0.3, 2),
}


@ways("nondeterministic", reference=False, triton=False)
@pytest.mark.parametrize("case", CASES)
def test_readings_are_the_nearest_numbers(way: Way, case: str) -> None:
    """Log weights of 0 and -inf have the same value in any precision."""
    length, num_states, num_symbols, forbidden, *quiet = CASES[case]
    for dtype, twos in ((torch.float64, 0.5), (torch.float32, 0.0)):
        known = runs(length, num_states, num_symbols, forbidden, *quiet, twos=twos)
        for inputs in (known.inputs(dtype), [x.requires_grad_() for x in known.inputs(dtype)]):
            assert torch.equal(way.read(inputs).detach(), known.weights.permute(0, 1, 3, 4, 2).to(dtype))


@pytest.mark.parametrize("backend", FAST)
def test_nondeterministic_weights_are_the_nearest_doubles_before_padding(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What else is in the batch, and what comes later, changes no bit."""
    known, shorter = runs(*CASES["n16"]), 11
    *steps, bottom = known.inputs(torch.float64)
    steps = [x.repeat(2, *(1,) * (x.dim() - 1)) for x in steps]
    for x in steps:
        x[1, shorter:] = torch.randn_like(x[1, shorter:])
    inputs = [*steps, bottom]
    _, weights = nondeterministic_stack(*inputs, backend=use_backend(backend, monkeypatch), return_weights=True)
    assert torch.equal(weights[:1], known.weights)
    assert torch.equal(weights[1:, :shorter], known.weights[:, :shorter])


@pytest.mark.parametrize("size", [(10, 1, 1), (5, 1, 3), (5, 2, 2)])
@pytest.mark.parametrize("instruction_set", INSTRUCTION_SETS)
def test_nondeterministic_weights_of_kernels_in_float32(
    instruction_set: str, size: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing is forbidden, the kernels compute in float32: with 1, 2 and the numbers of float32."""
    use_instruction_set(instruction_set, monkeypatch)
    known = runs(*size, 0.0, twos=0.4)
    assert 16 <= digits(known.totals) <= MANTISSA[torch.float32]
    push, replace, pop, values, bottom = known.inputs(torch.float32)
    vectors = torch.cat([bottom[None, None], values], 1)
    *_, wide, _ = native._stack(join_transitions(push, replace, pop), vectors, push.shape[2])
    assert not wide.any()
    weights = nondeterministic_stack(push, replace, pop, values, bottom, backend="native", return_weights=True)[1]
    assert torch.equal(weights, known.weights.float())


@pytest.mark.parametrize("case", ["n0", "n1", "n2", "n16", "n17"])
def test_nondeterministic_reference_in_log_space(case: str) -> None:
    """Logarithms of integers are rounded: W times the total is an integer up to a relative error of 2^-40."""
    known = runs(*CASES[case])
    _, weights = nondeterministic_stack(*known.inputs(torch.float64), backend="reference", return_weights=True)
    for (t, *rest), weight in np.ndenumerate(weights[0].numpy()):
        assert abs(weight * known.totals[t] - known.tops[t, *rest]) <= 2**-40 * known.totals[t]
