"""fairseq-train with --own-tapes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from torch import Tensor

from fairseq_stack.errors import UserError
from tests.end_to_end.fairseq_commands import PUSHDOWN, TRAINING, Output, run


def parameters_after(treebank: Path, folder: Path, *options: object) -> dict[str, Tensor]:
    run("train", treebank, *PUSHDOWN, *TRAINING, *options, "--save-dir", folder)
    return parameters_of(folder / "checkpoint_last.pt")


def parameters_of(path: Path) -> dict[str, Tensor]:
    model: dict[str, Tensor] = torch.load(path, weights_only=False)["model"]
    return model


def are_equal(these: dict[str, Tensor], those: dict[str, Tensor]) -> bool:
    return all(torch.equal(value, those[name]) for name, value in these.items())


def test_gold_tapes_first(treebank: Path, pushdown_training: tuple[Path, Output], tmp_path: Path) -> None:
    """Until then, training is as without the option, to the bit."""
    later = parameters_after(treebank, tmp_path, "--own-tapes", 1, "--own-tapes-after", 12)
    assert are_equal(parameters_of(pushdown_training[0]), later)


def test_resuming(treebank: Path, pushdown_training: tuple[Path, Output], tmp_path: Path) -> None:
    """Within an epoch; it gives the same parameters."""
    whole = parameters_after(treebank, tmp_path / "whole", "--own-tapes", 0.5)
    assert not are_equal(parameters_of(pushdown_training[0]), whole)
    parameters_after(treebank, tmp_path / "resumed", "--own-tapes", 0.5, "--max-update", 8)
    assert are_equal(whole, parameters_after(treebank, tmp_path / "resumed", "--own-tapes", 0.5))


BASE = ("--own-tapes", 0.5, "--stack-layers", "sdpa", "--no-depths-in-head")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--own-tapes", 1.5), "--own-tapes: expected a fraction of the training samples from 0 to 1, got 1.5"),
        (("--own-tapes", 1, "--own-tapes-after", -1), "--own-tapes-after: expected a number of updates, at least 0, "),
        (("--own-tapes-after", 5), "--own-tapes-after 5 needs --own-tapes, a fraction above 0"),
        (BASE, "--own-tapes needs a model that reads a tape"),
    ],
    ids=["share", "after", "after-alone", "base"],
)
def test_errors(treebank: Path, tmp_path: Path, options: tuple[object, ...], problem: str) -> None:
    with pytest.raises(UserError, match=f"^{re.escape(problem)}"):
        run("train", treebank, *PUSHDOWN, *TRAINING, *options, "--save-dir", tmp_path)
