"""Helpers for several test modules: ``from tests.helpers import assert_normwise_close``."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from _pytest.mark import ParameterSet
from torch import Tensor
from torch.autograd import forward_ad
from torch.func import grad, jvp, vmap
from torch.profiler import ProfilerActivity, profile

from fairseq_stack.ops import _native
from fairseq_stack.ops._native import availability
from tests.conftest import REPOSITORY, reference_folder

ArrayLike = Tensor | np.ndarray | float


def assert_normwise_close(actual: ArrayLike, expected: ArrayLike, tolerance: float, name: str = "") -> None:
    """Assert that max |actual - expected| <= tolerance * max |expected|.

    Where ``expected`` is zero throughout, the tolerance is absolute. Equal infinities agree; a NaN on either
    side, an infinity on one side only and a difference in shape fail.

    Args:
        actual: what the code under test returned, a tensor or an array.
        expected: what it should have returned, of the same shape.
        tolerance: the largest relative error allowed.
        name: what is compared, for the message.
    """
    what = f"{name}: " if name else ""
    actual_array, expected_array = _to_float64(actual), _to_float64(expected)
    assert actual_array.shape == expected_array.shape, (
        f"{what}shape {actual_array.shape}, expected {expected_array.shape}"
    )
    if expected_array.size == 0:
        return
    assert not np.isnan(expected_array).any(), f"{what}the expected values contain NaN"
    assert not np.isnan(actual_array).any(), f"{what}{np.isnan(actual_array).sum()} values are NaN"
    infinite = np.isinf(actual_array) | np.isinf(expected_array)
    assert np.array_equal(actual_array[infinite], expected_array[infinite]), f"{what}infinities differ"
    actual_array, expected_array = (np.where(infinite, 0, array) for array in (actual_array, expected_array))
    error = np.abs(actual_array - expected_array)
    scale = np.abs(expected_array).max() or 1.0
    worst = np.unravel_index(error.argmax(), error.shape)
    assert error.max() <= tolerance * scale, (
        f"{what}normwise error {error.max() / scale:.3g} exceeds {tolerance:.3g}; largest at "
        f"{tuple(int(i) for i in worst)}: got {actual_array[worst]!r}, expected {expected_array[worst]!r}"
    )


def _to_float64(values: ArrayLike) -> np.ndarray:
    if isinstance(values, Tensor):
        values = values.detach().to("cpu", torch.float64).numpy()
    return np.asarray(values, dtype=np.float64)


def gradients(readings: Tensor, inputs: Sequence[Tensor], cotangent: Tensor) -> tuple[Tensor, ...]:
    """With respect to each input."""
    return torch.autograd.grad((readings * cotangent).sum(), inputs, retain_graph=True, materialize_grads=True)


def assert_agree(
    actual: Tensor | Iterable[Tensor],
    expected: Tensor,
    inputs: Sequence[Tensor],
    tolerance: float = 1e-12,
    of_gradients: float | None = None,
    *,
    rounding: float = 0.0,
    wide: Sequence[Tensor] | None = None,
    names: Iterable[str] = (),
) -> None:
    """Assert that readings and their gradients agree, in the dtype of each.

    Args:
        actual: readings, or the readings of several backends, computed and compared one after the other.
        of_gradients: the tolerance of gradients, if it is another one.
        rounding: an absolute error allowed in gradients.
        wide: the inputs of ``expected``, if they are other tensors.
        names: of the inputs.
    """
    cotangent = torch.randn_like(expected)
    of_expected = gradients(expected, inputs if wide is None else wide, cotangent)
    for readings in [actual] if isinstance(actual, Tensor) else actual:
        assert_normwise_close(readings, expected, tolerance, "readings")
        of_actual = gradients(readings, inputs, cotangent.to(readings.dtype))
        pairs = zip(of_actual, of_expected, strict=True)
        for name, x, (one, other) in zip(names or map(str, itertools.count()), inputs, pairs, strict=False):
            assert one.dtype == x.dtype
            scale = float(other.abs().max() if other.numel() else 1) or 1.0
            assert_normwise_close(one, other, max(of_gradients or tolerance, rounding / scale), name)


def assert_refuses_forward_mode(function: Callable[[Tensor], Tensor], x: Tensor, op: str) -> None:
    """Assert that a tangent of ``x`` raises an error, alone and next to other transformations, and no tangent none."""
    message = f"{op}: only backend='reference' has the forward-mode derivatives"
    expected = function(x)
    tangent = jvp(lambda y: y * function(x), (expected,), (expected,))[1]
    assert_normwise_close(tangent, expected * expected, 1e-12)
    with pytest.raises(RuntimeError, match=message):
        jvp(function, (x,), (x,))
    with pytest.raises(RuntimeError, match=message):
        jvp(vmap(function), (torch.stack([x, x]),), (torch.stack([x, x]),))
    with pytest.raises(RuntimeError, match=message):  # another derivative inside, with regard to another tensor
        jvp(lambda x: grad(lambda y: (y * function(x)).sum())(expected), (x,), (x,))
    with forward_ad.dual_level(), pytest.raises(RuntimeError, match=message):
        function(forward_ad.make_dual(x, x))


def hostile(*values: object) -> ParameterSet:
    """Values of parameters with which a test is run with ``--hostile`` only."""
    return pytest.param(*values, marks=pytest.mark.hostile)


def each_golden_file(*patterns: str) -> pytest.MarkDecorator:
    """Runs a test with ``path`` for each golden file of the project and of the reference data, if they are there.

    Args:
        patterns: of paths in a folder of golden files. A path that is in both folders is taken once.
    """
    paths: dict[str, Path] = {}
    for folder in (REPOSITORY / "tests" / "golden", reference_folder() / "golden"):
        for path in itertools.chain.from_iterable(folder.glob(pattern) for pattern in patterns):
            paths.setdefault(path.relative_to(folder).as_posix(), path)
    names = sorted(paths)
    return pytest.mark.parametrize("path", [paths[name] for name in names], ids=names)


INSTRUCTION_SETS = ("avx512", "avx2", "baseline")


def use_instruction_set(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the compiled kernels use this instruction set, or skip the test where they cannot."""
    compiled, reason = availability()
    if compiled is None:
        assert "CI" not in os.environ, f"CI has a C compiler, but {reason}"
        pytest.skip(reason)
    if name not in compiled.instruction_sets:
        pytest.skip(f"this machine has no {name}")
    monkeypatch.setattr(compiled, "instruction_set", name)


def use_backend(name: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The backend of this name; one such as ``native-avx2`` is the compiled one with that instruction set."""
    if name.startswith("native-"):
        use_instruction_set(name.removeprefix("native-"), monkeypatch)
        return "native"
    return name


@contextlib.contextmanager
def threads(count: int) -> Iterator[None]:
    """Have PyTorch use so many threads, and the compiled kernels use them for any work."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_native, "WORTH_THREADS", 1)
            patch.setattr(_native, "WORTH_CREW", 1)
            yield
    finally:
        torch.set_num_threads(before)


def peak_of_bytes(run: Callable[[], object]) -> int:
    """The largest size of all tensors on the CPU at a time that ``run`` allocates."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        run()
    assert profiler.profiler is not None and profiler.profiler.kineto_results is not None
    events = [x for x in profiler.profiler.kineto_results.events() if x.name() == "[memory]"]
    changes = (x.nbytes() for x in sorted(events, key=lambda x: x.start_ns()))
    return max(itertools.accumulate(changes))
