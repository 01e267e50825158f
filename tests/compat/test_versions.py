"""Which versions of fairseq and numpy are accepted, and what a checkpoint may hold."""

from __future__ import annotations

import os
import pickle
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from fairseq_stack import compat
from fairseq_stack.compat import versions

pytestmark = pytest.mark.usefixtures("shims")


@pytest.mark.parametrize("version", ["0.12.3", "0.12.3.1", "0.12.3.4"])
def test_supported_versions_are_accepted(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairseq.__version__", version)
    versions.require_supported_fairseq()


@pytest.mark.parametrize(
    ("version", "reason"),
    [("0.12.2", "got version 0.12.2"), ("0.12.30", "got version 0.12.30")],
)
def test_unsupported_versions_are_refused(version: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairseq.__version__", version)
    with pytest.raises(ImportError, match=reason) as refusal:
        compat.apply()
    assert "pip install --no-build-isolation 'fairseq_stack[fairseq]'" in str(refusal.value)


def test_fairseq_that_cannot_be_imported_is_an_error_that_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As 0.12.2 on Python 3.11."""
    (tmp_path / "fairseq.py").write_text("raise ValueError('mutable default CommonConfig')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "fairseq")
    with pytest.raises(ImportError, match=r"mutable default CommonConfig.*0\.12\.2.*pip uninstall fairseq"):
        compat.apply()


def test_numpy_compat_long_is_int(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(np, "compat", raising=False)
    versions.restore_numpy_compat()
    assert vars(np)["compat"].long is int


def test_numpy_1_keeps_its_own_compat(monkeypatch: pytest.MonkeyPatch) -> None:
    known = SimpleNamespace()
    monkeypatch.setattr(np, "compat", known, raising=False)
    versions.restore_numpy_compat()
    assert vars(np)["compat"] is known


class Malicious:
    """Creates a file when it is unpickled."""

    def __init__(self, victim: Path) -> None:
        self.victim = victim

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return os.mkdir, (str(self.victim),)


def fairseq_like_checkpoint() -> dict[str, Any]:
    metrics = [("valid", "_bleu_counts", np.array([4, 3, 2, 1]))]
    return {
        "cfg": {"model": Namespace(arch="stack_transformer", stack_encoder_layers="2xsdpa")},
        "model": {"weight": torch.arange(3.0)},
        "extra_state": {"metrics": metrics},
    }


@pytest.fixture
def no_safe_globals() -> Iterator[None]:
    known = torch.serialization.get_safe_globals()
    torch.serialization.clear_safe_globals()
    yield
    torch.serialization.clear_safe_globals()
    torch.serialization.add_safe_globals(known)


def test_namespace_and_integer_metrics_load(tmp_path: Path, no_safe_globals: None) -> None:
    torch.save(fairseq_like_checkpoint(), tmp_path / "checkpoint.pt")
    with pytest.raises(pickle.UnpicklingError):
        torch.load(tmp_path / "checkpoint.pt")
    versions.allow_checkpoint_globals()
    loaded = torch.load(tmp_path / "checkpoint.pt")
    assert loaded["cfg"]["model"] == Namespace(arch="stack_transformer", stack_encoder_layers="2xsdpa")
    assert loaded["extra_state"]["metrics"][0][2].tolist() == [4, 3, 2, 1]


@pytest.mark.parametrize("place", ["namespace", "object array"])
def test_malicious_checkpoint_is_refused(place: str, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    bomb: Any = Malicious(victim)
    checkpoint = fairseq_like_checkpoint()
    if place == "namespace":
        checkpoint["cfg"]["model"].arch = bomb
    else:
        checkpoint["extra_state"]["bomb"] = np.array([bomb], dtype=object)
    torch.save(checkpoint, tmp_path / "checkpoint.pt")
    with pytest.raises(pickle.UnpicklingError):
        torch.load(tmp_path / "checkpoint.pt")
    assert not victim.exists()
    torch.load(tmp_path / "checkpoint.pt", weights_only=False)
    assert victim.exists(), "the checkpoint was harmless, so this test proves nothing"
