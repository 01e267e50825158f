"""Only implementations that agree with the papers' equations are measured."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .cases import REFERENCE, Case, Tensors, Variant, judge_of

TOLERANCES = {torch.float64: 1e-9, torch.float32: 2e-5}
"""The largest allowed error of readings and of each gradient, relative to the largest element."""


class Disagreement(Exception):
    """An implementation computes wrong numbers; the message says in one line which one, and by how much."""


def check(case: Case, variants: Sequence[Variant], device: torch.device) -> dict[Variant, float]:
    """Compare variants with the reference on a small case, and with PyTorch in float64 on the case itself.

    Returns:
        The largest error of each variant.

    Raises:
        Disagreement: if a variant disagrees.
    """
    judge = judge_of(case)  # which is tried itself on the small case
    errors = dict.fromkeys((judge, *variants), 0.0)
    for dtype in dict.fromkeys(variant.dtype for variant in errors):
        tried = [variant for variant in errors if variant.dtype == dtype]
        _compare(case.small(), Variant(REFERENCE), tried, device, errors)
        _compare(case, judge, [variant for variant in tried if variant != judge], device, errors)
    return errors


def normwise_error(actual: Tensor, expected: Tensor) -> float:
    """max |actual - expected| / max |expected|; NaN if there is one in either."""
    scale = expected.abs().max().double()
    return float((actual.double() - expected.double()).abs().max() / (scale if scale > 0 else 1))


def refuse_if_wrong(what: str, error: float, dtype: torch.dtype) -> None:
    """Raise Disagreement unless the error is within the tolerance of the dtype."""
    if not error <= TOLERANCES[dtype]:
        raise Disagreement(f"{what} by {error:.1e} (at most {TOLERANCES[dtype]:.0e} is allowed); nothing is measured")


def _compare(
    case: Case, judge: Variant, variants: Sequence[Variant], device: torch.device, errors: dict[Variant, float]
) -> None:
    """Raise the errors of variants of one dtype to their errors on this case, if these are larger."""
    if not variants:
        return
    dtype = variants[0].dtype
    inputs = case.inputs(dtype, device)
    expected = _outputs(case, judge, {name: tensor.double() for name, tensor in inputs.items()})
    for variant in variants:
        actual = _outputs(case, variant, inputs)
        for name, tensor in expected.items():
            error = normwise_error(actual[name], tensor)
            what = f"{variant.label} is wrong: for {case}, {name} differ from {judge.label}"
            refuse_if_wrong(what, error, dtype)
            errors[variant] = max(errors[variant], error)


def _outputs(case: Case, variant: Variant, inputs: Tensors) -> Tensors:
    """The readings and all gradients."""
    leaves = {name: tensor.detach().requires_grad_() for name, tensor in inputs.items()}
    with variant.active():
        readings = variant.readings(case, leaves)
        gradients = torch.autograd.grad(readings, [*leaves.values()], case.cotangent(leaves))
    by_name = zip(leaves, gradients, strict=True)
    return {"readings": readings.detach()} | {f"gradients of {name}": gradient for name, gradient in by_name}
