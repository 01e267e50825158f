"""The ops and the steps of their states under ``torch.func``, compared with plain calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

from fairseq_stack.modules import SuperpositionStackAttention
from fairseq_stack.ops import (
    input_buffer,
    nondeterministic_stack,
    output_buffer,
)
from fairseq_stack.ops.depth_scores import composed_scores
from tests.helpers import assert_normwise_close
from tests.ops.stacks import STACKS

B = 2
ROWS = 3  # of the mapped axis
Function = Callable[..., Tensor]


def nondeterministic_weights(*inputs: Tensor, backend: str) -> Tensor:
    return nondeterministic_stack(*inputs, backend=backend, return_weights=True)[1]


def half_of_output_buffer(push: Tensor, values: Tensor, backend: str) -> Tensor:
    return output_buffer(push, values, push.size(1) // 2, reading="read-first", backend=backend)


OPS: dict[str, Callable[..., Tensor]] = {
    **{name: stack.compute for name, stack in STACKS.items() if not name.endswith(("amounts", "window"))},
    "input-buffer": input_buffer,
    "output-buffer": half_of_output_buffer,
    "nondeterministic-weights": nondeterministic_weights,
}


def inputs_of(op: str, length: int, size: int = 9) -> tuple[Tensor, ...]:
    if op.endswith("buffer"):
        return torch.rand(B, length, dtype=torch.float64), torch.randn(B, length, size, dtype=torch.float64)
    return tuple(STACKS[op.removesuffix("-weights")].draw(B, length, size))


# Forms that autograd differentiates.
CLOSED = ("stratification", "queue", "input-buffer", "output-buffer", "delta", "pointer", "pointer-clamped")
HAND_WRITTEN = [(op, backend) for op in OPS if op not in CLOSED for backend in ("pytorch", "native")]
WITH_A_CLOSED = [*HAND_WRITTEN, ("stratification", "pytorch")]
CASES = [(*pair, *size) for pair in WITH_A_CLOSED for size in ((0, 9), (4, 9))]  # op, backend, n, m
CASES += [(op, backend, 4, 2) for op, backend in HAND_WRITTEN if op.startswith("superposition")]  # in another layout


class Case:
    """An op with a backend, and inputs for it."""

    def __init__(self, op: str, backend: str, length: int = 4, size: int = 9) -> None:
        self.op, self.backend = op, backend
        self.inputs = inputs_of(op, length, size)
        self.every = tuple(range(len(self.inputs)))
        self.cotangent = torch.randn_like(self.stack(*self.inputs))

    def stack(self, *inputs: Tensor) -> Tensor:
        return OPS[self.op](*inputs, backend=self.backend)

    def loss(self, *inputs: Tensor) -> Tensor:
        return (self.stack(*inputs) * self.cotangent).sum()

    def gradients(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """By plain autograd."""
        leaves = [x.detach().clone().requires_grad_() for x in inputs]
        return torch.autograd.grad(self.loss(*leaves), leaves, materialize_grads=True)

    def many(self) -> tuple[Tensor, ...]:
        """Inputs with a first axis to map over."""
        return tuple(torch.stack([x + 0.1 * i for i in range(ROWS)]) for x in self.inputs)


@pytest.fixture
def case(request: pytest.FixtureRequest) -> Case:
    return Case(*request.param)


def each(pairs: Sequence[tuple[str, str]], length: int = 4, size: int = 9) -> pytest.MarkDecorator:
    return each_of([(*pair, length, size) for pair in pairs])


def each_of(cases: Sequence[tuple[str, str, int, int]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, indirect=True, ids=lambda case: "{}-{}-n{}-m{}".format(*case))


def row_by_row(function: Callable[..., tuple[Tensor, ...]], *many: Tensor) -> tuple[Tensor, ...]:
    rows = [function(*(x[i] for x in many)) for i in range(ROWS)]
    return tuple(torch.stack(same) for same in zip(*rows, strict=True))


def assert_same(actual: Sequence[Tensor], expected: Sequence[Tensor]) -> None:
    for i, (one, other) in enumerate(zip(actual, expected, strict=True)):
        assert_normwise_close(one, other, 1e-12, f"{i}")


@each_of(CASES)
def test_grad_and_vjp(case: Case) -> None:
    expected = case.gradients(*case.inputs)
    assert_same(grad(case.loss, argnums=case.every)(*case.inputs), expected)
    readings, pull_back, *_ = vjp(case.stack, *case.inputs)
    assert torch.equal(readings, case.stack(*case.inputs))
    assert_same(pull_back(case.cotangent), expected)


@each_of(CASES)
def test_gradients_of_each_sample(case: Case) -> None:
    """The common use of vmap; also over another axis than the first, and over one of the inputs alone."""
    gradients, many = grad(case.loss, argnums=case.every), case.many()
    expected = row_by_row(case.gradients, *many)
    assert_same(vmap(gradients)(*many), expected)
    assert_same(vmap(gradients, in_dims=-1)(*(x.movedim(0, -1) for x in many)), expected)
    for i in case.every:
        alone = tuple(0 if i == j else None for j in case.every)
        mixed = tuple(many[j] if i == j else x for j, x in enumerate(case.inputs))
        repeated = tuple(many[j] if i == j else x.expand(ROWS, *x.shape) for j, x in enumerate(case.inputs))
        assert_same(vmap(gradients, in_dims=alone)(*mixed), row_by_row(case.gradients, *repeated))


@each_of(CASES)
def test_vmap_with_other_axes_and_without_rows(case: Case) -> None:
    many = case.many()
    (expected,) = row_by_row(lambda *x: (case.stack(*x),), *many)
    assert_same([vmap(case.stack, in_dims=1, out_dims=1)(*(x.movedim(0, 1) for x in many))], [expected.movedim(0, 1)])
    assert vmap(case.stack)(*(x[:0] for x in many)).shape == (0, *expected.shape[1:])


@each(WITH_A_CLOSED)
def test_nested_transformations(case: Case) -> None:
    many = case.many()
    expected = row_by_row(case.gradients, *many)
    twice = [x.expand(2, *x.shape) for x in many]
    gradients = grad(case.loss, argnums=case.every)
    assert_same(vmap(vmap(gradients))(*twice), [x.expand(2, *x.shape) for x in expected])
    assert_same(grad(lambda *x: vmap(case.loss)(*x).sum(), argnums=case.every)(*many), expected)


@each_of([(*pair, n, 2) for pair in WITH_A_CLOSED for n in (0, 2)])
def test_jacobians(case: Case) -> None:
    jacobians = jacrev(case.stack, argnums=case.every)
    wanted = jacrev(lambda *x: OPS[case.op](*x, backend="reference"), argnums=case.every)
    assert_same(jacobians(*case.inputs), wanted(*case.inputs))
    if case.cotangent.numel():  # as many cotangents as there are rows could be taken for them
        chunked = jacrev(case.stack, argnums=case.every, chunk_size=ROWS)
        assert_same(vmap(chunked)(*case.many()), row_by_row(wanted, *case.many()))


@each(HAND_WRITTEN)
def test_forward_mode_is_refused(case: Case) -> None:
    refused = pytest.raises(RuntimeError, match=r"_stack: only backend='reference' has the forward-mode derivatives")
    with refused:
        jvp(case.stack, case.inputs, case.inputs)
    with refused:
        jacfwd(case.stack)(*case.inputs)
    with refused:
        vmap(lambda *x: jvp(case.stack, x, x))(*case.many())
    with refused:
        hessian(case.loss)(*case.inputs)
    with forward_ad.dual_level():
        first = forward_ad.make_dual(case.inputs[0], case.inputs[0])
        with refused:
            case.stack(first, *case.inputs[1:])


@each(HAND_WRITTEN)
def test_second_derivatives_are_refused(case: Case) -> None:
    refused = pytest.raises(RuntimeError, match=r"_stack: only backend='reference' has second derivatives")
    with refused:
        jacrev(jacrev(case.loss))(*case.inputs)
    with refused:
        grad(lambda *x: grad(case.loss)(*x).square().sum())(*case.inputs)
    first = case.inputs[0].requires_grad_()
    (gradient,) = torch.autograd.grad(case.loss(*case.inputs), first, create_graph=True)
    with refused:
        gradient.sum().backward()


@each([(op, "pytorch") for op in CLOSED])
def test_forward_mode_and_second_derivatives_of_closed_forms(case: Case) -> None:
    def reference(*inputs: Tensor) -> Tensor:
        return OPS[case.op](*inputs, backend="reference")

    tangents = [torch.randn_like(x) for x in case.inputs]
    assert_same(jvp(case.stack, case.inputs, tuple(tangents)), jvp(reference, case.inputs, tuple(tangents)))
    wanted = hessian(lambda *x: (reference(*x) * case.cotangent).sum(), argnums=case.every)(*case.inputs)
    for actual, expected in zip(hessian(case.loss, argnums=case.every)(*case.inputs), wanted, strict=True):
        assert_same(actual, expected)


@pytest.mark.parametrize("stack", ["superposition", "stratification", "queue", "nondeterministic"])
def test_steps_of_states(stack: str) -> None:
    """Also forward-mode and second derivatives, which the states have."""
    case = Case(stack, "reference", length=3, size=2)

    def stepped(*inputs: Tensor) -> Tensor:
        """With the rows of the batch left as they are by a reordering before each step."""
        state, readings = STACKS[stack].begin(inputs), []
        for t in range(3):
            state = state.reorder(torch.arange(B))
            reading, state = STACKS[stack].step_through(STACKS[stack].part(inputs, slice(t, t + 1)), state)
            readings.append(reading)
        return torch.cat(readings, 1)

    tangents = tuple(torch.randn_like(x) for x in case.inputs)
    transformations: dict[str, Callable[[Function], Any]] = {
        "vmap": lambda f: [vmap(f)(*case.many())],
        "vmap of grad": lambda f: vmap(grad(lambda *x: f(*x).square().sum(), argnums=case.every))(*case.many()),
        "vjp": lambda f: vjp(f, *case.inputs)[1](case.cotangent),
        "jvp": lambda f: jvp(f, case.inputs, tangents),
        "jacrev": lambda f: jacrev(f, argnums=case.every)(*case.inputs),
        "hessian": lambda f: [hessian(lambda *x: f(*x).square().sum())(*case.inputs)],
    }
    for name, transform in transformations.items():
        for actual, expected in zip(transform(stepped), transform(case.stack), strict=True):
            assert_normwise_close(actual, expected, 1e-11, name)
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(x, tangent) for x, tangent in zip(case.inputs, tangents, strict=True)]
        actual, expected = (forward_ad.unpack_dual(f(*duals)).tangent for f in (stepped, case.stack))
    assert_normwise_close(actual, expected, 1e-11, "dual numbers")


def test_steps_whose_index_is_mapped() -> None:
    """A state that was stepped without a transformation is reordered and stepped under one."""
    push, replace, pop, values, bottom = inputs_of("nondeterministic", 3, 3)
    state = STACKS["nondeterministic"].begin((push, replace, pop, values, bottom))
    for t in range(2):
        _, state = state.step(push[:, t], replace[:, t], pop[:, t], values[:, t])

    def last(index: Tensor) -> Tensor:
        return state.reorder(index).step(push[:, 2], replace[:, 2], pop[:, 2], values[:, 2])[0]

    index = torch.tensor([[0, 1], [1, 1], [1, 0]])
    assert_normwise_close(vmap(last)(index), torch.stack([last(one) for one in index]), 1e-12)


def test_layers_that_choose_by_their_numbers() -> None:
    """They do not under ``torch.func``."""
    inputs = torch.randn(ROWS, B, 3, 4).double()
    attention = SuperpositionStackAttention(4, 2).double()
    readings = vmap(lambda x: attention.extend(x, attention.initial_state(B))[0])(inputs)
    assert_normwise_close(readings, torch.stack([attention(x) for x in inputs]), 1e-12)
    queries, depths, tape = inputs[0], torch.randn(5, 4).double(), torch.randint(5, (B, 3, 3))
    gradient = grad(lambda q: composed_scores(q, inputs[1], depths, tape).sum())(queries)
    (expected,) = torch.autograd.grad(composed_scores(queries.requires_grad_(), inputs[1], depths, tape).sum(), queries)
    assert_normwise_close(gradient, expected, 1e-12)
