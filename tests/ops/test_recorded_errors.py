"""No error has grown to four times its recorded value, or exceeds twice the error of the equations in float32."""

from __future__ import annotations

import pytest

from tests.ops import recorded_errors
from tests.ops.recorded_errors import CASES, LARGE_CASES, REFERENCE, Errors

REWRITE = "if that is meant to be: python -m tests.ops.recorded_errors"


@pytest.mark.parametrize("name", [*CASES, *(pytest.param(name, marks=pytest.mark.hostile) for name in LARGE_CASES)])
def test_errors(name: str) -> None:
    found = recorded_errors.problems(
        recorded_errors.measure((CASES | LARGE_CASES)[name]), recorded_errors.read().get(name, {})
    )
    assert not found, "\n".join([*found, REWRITE])


def test_the_record_has_no_other_cases() -> None:
    assert list(recorded_errors.read()) == list(CASES | LARGE_CASES)


def errors(error: float, dtype: str = "float32") -> Errors:
    return {REFERENCE: {"push": 1e-6}, f"native {dtype}": {"push": error}}


@pytest.mark.parametrize(
    ("measured", "written", "problem"),
    [
        (errors(1.9e-6), errors(0.5e-6), None),
        (errors(1.9e-6), errors(0.4e-6), "push, native float32: error 1.9e-06, in the record 4.0e-07"),
        (errors(2.1e-6), errors(2.1e-6), "push, native float32: error 2.1e-06, reference in float32 1.0e-06"),
        (errors(float("nan")), errors(float("nan")), "push, native float32: error nan, in the record nan"),
        (errors(1e-6), {REFERENCE: {"push": 1e-6}}, "push, native float32: not in the record"),
        (errors(3e-16, "float64"), errors(0.0, "float64"), None),
        (
            errors(5e-16, "float64"),
            errors(0.0, "float64"),
            "push, native float64: error 5.0e-16, in the record 0.0e+00",
        ),
    ],
)
def test_problems_are_noticed(measured: Errors, written: Errors, problem: str | None) -> None:
    assert recorded_errors.problems(measured, written)[:1] == ([problem] if problem else [])
