"""fairseq-stack doctor: which implementations are used, and whether they are right."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from fairseq_stack import cli
from fairseq_stack.cli import doctor
from fairseq_stack.errors import INSTALL_FAIRSEQ
from fairseq_stack.ops import Backend, _backends, automatic_backend, nondeterministic, superposition
from fairseq_stack.ops._native import availability


def test_report(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor"]) == 0
    text = capsys.readouterr().out
    compiled, reason = availability()
    backend = "pytorch" if compiled is None else "native"
    assert f"compiled kernels: {reason}" in text
    assert f"nondeterministic_stack: {backend}; agrees with the reference" in text
    assert "stratification_stack: pytorch; agrees with the reference" in text


def test_a_wrong_backend_is_reported(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    right = nondeterministic.BACKENDS["reference"].compute

    def wrong(*arguments: Tensor, **settings: bool) -> tuple[Tensor, None]:
        readings, _ = right(*arguments, **settings)
        return 1.01 * readings, None

    for backend in ("native", "pytorch"):
        monkeypatch.setitem(nondeterministic.BACKENDS, backend, Backend(backend, wrong))
    assert cli.main(["doctor"]) == 1
    assert "WRONG" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("versions", "line"),
    [
        ({"ve-fairseq": "0.12.3"}, "ve-fairseq 0.12.3\n"),
        ({}, f"fairseq is not installed, which the plugin needs; {INSTALL_FAIRSEQ}\n"),
        ({"fairseq-fixed": "0.12.3.1", "ve-fairseq": "0.12.3"}, "fairseq-fixed 0.12.3.1 and ve-fairseq 0.12.3 over"),
    ],
)
def test_which_fairseq_is_installed(
    versions: dict[str, str], line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_version", versions.get)
    monkeypatch.setattr(doctor, "checks", lambda device: iter(()))
    assert cli.main(["doctor"]) == 0
    assert f"\n{line}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", None),
        ("raise OSError('libc10_cuda.so')", r"next to this torch \(libc10_cuda\.so\).*pip uninstall torchaudio"),
    ],
    ids=["fits", "does not fit"],
)
def test_torchaudio_for_another_torch(
    content: str, problem: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torchaudio.py").write_text(content)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torchaudio", raising=False)
    said = doctor.torchaudio_problem()
    sys.modules.pop("torchaudio", None)
    assert said is None if problem is None else re.search(problem, said or "")


@pytest.mark.parametrize("obstacle", [None, "cannot be used"])
def test_gpus_have_triton_or_else_pytorch(obstacle: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_backends, "_obstacle_of_triton", lambda device: obstacle)
    for backends in (nondeterministic.BACKENDS, superposition.BACKENDS):
        used = "pytorch" if obstacle else "triton"
        assert automatic_backend(backends, torch.device("cuda")).name == used
        assert automatic_backend(backends, torch.device("cpu")).name != "triton"


def test_the_report_says_why_triton_cannot_run_on_a_gpu(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    monkeypatch.setattr("torch.cuda.get_device_name", lambda device: "a GPU")
    monkeypatch.setattr(doctor, "checks", lambda device: iter(()))
    monkeypatch.setattr(_backends, "_obstacle_of_triton", lambda device: "cannot be used: it is too old")
    assert cli.main(["doctor"]) == 0
    _, of_gpu = capsys.readouterr().out.split("cuda:0: a GPU\n")
    assert of_gpu == "  the backend triton cannot be used: it is too old\n"
