"""Only implementations that agree with the papers' equations are measured."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .stacks import Case, Tensors
from .variants import Variant, pytorch, reference

TOLERANCES = {torch.float64: 1e-9, torch.float32: 2e-5}
"""The largest allowed error of readings and of each gradient, relative to the largest element."""


class Disagreement(Exception):
    """An implementation computes wrong numbers; the message says in one line which one, and by how much."""


def check(case: Case, variants: Sequence[Variant], device: torch.device) -> dict[str, float]:
    """Compare variants with the reference on a small case, and with PyTorch in float64 on the case itself.

    Returns:
        The largest error of each variant, by its label.

    Raises:
        Disagreement: if a variant disagrees.
    """
    judge = pytorch(case, torch.float64)  # which is tried itself on the small case
    by_label = {variant.label: variant for variant in (judge, *variants)}
    small = case.small()
    errors = dict.fromkeys(by_label, 0.0)
    for dtype in dict.fromkeys(variant.dtype for variant in by_label.values()):
        tried = [variant for variant in by_label.values() if variant.dtype == dtype]
        _compare(small, reference(small), tried, device, errors)
        _compare(case, judge, [variant for variant in tried if variant.label != judge.label], device, errors)
    return errors


def leaves(inputs: Tensors) -> Tensors:
    """The same numbers as inputs that have no history."""
    return {name: tensor.detach().requires_grad_() for name, tensor in inputs.items()}


def cotangent_for(case: Case, inputs: Tensors) -> Tensor:
    """A gradient of the readings."""
    generator = torch.Generator().manual_seed(1)
    return torch.randn(*case.sizes, generator=generator, dtype=torch.float64).to(inputs["values"])


def normwise_error(actual: Tensor, expected: Tensor) -> float:
    """max |actual - expected| / max |expected|; NaN if there is one in either."""
    scale = expected.abs().max().double()
    return float((actual.double() - expected.double()).abs().max() / (scale if scale > 0 else 1))


def refuse_if_wrong(what: str, error: float, dtype: torch.dtype) -> None:
    """Raise Disagreement unless the error is within the tolerance of the dtype."""
    if not error <= TOLERANCES[dtype]:
        raise Disagreement(f"{what} by {error:.1e} (at most {TOLERANCES[dtype]:.0e} is allowed); nothing is measured")


def _compare(
    case: Case, judge: Variant, variants: Sequence[Variant], device: torch.device, errors: dict[str, float]
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
            errors[variant.label] = max(errors[variant.label], error)


def _outputs(case: Case, variant: Variant, inputs: Tensors) -> Tensors:
    """The readings and all gradients."""
    inputs = leaves(inputs)
    with variant.active():
        readings = variant.compute(inputs)
        gradients = torch.autograd.grad(readings, [*inputs.values()], cotangent_for(case, inputs))
    by_name = zip(inputs, gradients, strict=True)
    return {"readings": readings.detach()} | {f"gradients of {name}": gradient for name, gradient in by_name}
