"""fairseq-stack doctor: which implementations are used, and whether they are right."""

from __future__ import annotations

import pytest

from fairseq_stack import cli
from fairseq_stack.ops import Backend, _backends, nondeterministic
from fairseq_stack.ops._native import Availability, availability


def test_report(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor"]) == 0
    text = capsys.readouterr().out
    compiled, reason = availability()
    backend = "pytorch" if compiled is None else "native"
    assert f"compiled kernels: {reason}" in text
    assert f"nondeterministic_stack: {backend}; agrees with the reference" in text
    assert "stratification_stack: pytorch; agrees with the reference" in text


def test_without_the_compiled_kernels(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairseq_stack.ops._native.availability", lambda: Availability(None, "no compiler"))
    monkeypatch.setattr(_backends, "library", lambda: None)
    assert cli.main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert "compiled kernels: no compiler" in text
    assert "nondeterministic_stack: pytorch; agrees with the reference" in text


def test_a_wrong_backend_is_reported(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    right = nondeterministic.BACKENDS["reference"].compute
    for backend in ("native", "pytorch"):
        wrong = Backend(backend, lambda *x, **settings: 1.01 * right(*x, **settings))
        monkeypatch.setitem(nondeterministic.BACKENDS, backend, wrong)
    assert cli.main(["doctor"]) == 1
    assert "WRONG" in capsys.readouterr().out
