"""fairseq-stack average: means of parameters in one checkpoint, and mistakes in one line that leave no file."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from fairseq_stack import cli

State = dict[str, Any]


def parameters(value: float) -> dict[str, Tensor]:
    shared = torch.full((3, 2), float(value))
    double = shared.double()
    return {
        "decoder.dictionary_version": torch.tensor(123456789012345),
        "decoder.embed_tokens.weight": shared,
        "decoder.output_projection.weight": shared,
        "decoder.half": torch.tensor([value, 0.1], dtype=torch.float16),
        "decoder.double": double,
        "decoder.double_too": double,
        "decoder.embed_positions._float_tensor": torch.tensor([torch.nan]),
    }


def save(path: Path, value: float, change: Callable[[State], object] = lambda state: None) -> Path:
    """Write a checkpoint as small as can be, as fairseq would."""
    state = {
        "cfg": {"model": Namespace(stack_layers="sdpa", dropout=value)},
        "model": parameters(value),
        "optimizer_history": [{"num_updates": int(value), "optimizer_name": "FairseqAdam", "lr_scheduler_state": {}}],
        "last_optimizer_state": {"state": torch.zeros(1000)},
        "extra_state": {"train_iterator": {"epoch": int(value)}, "ema": parameters(value)},
    }
    change(state)
    torch.save(state, path)
    return path


@pytest.fixture
def checkpoints(tmp_path: Path) -> list[Path]:
    """The checkpoints of four epochs; the parameters of epoch 1 are 1, of epoch 2 are 2, and so on."""
    return [save(tmp_path / f"checkpoint{epoch}.pt", epoch) for epoch in (1, 2, 9, 10)]


def average(*arguments: object) -> int:
    return cli.main(["average", *map(str, arguments)])


def mean(path: Path) -> float:
    return float(torch.load(path, weights_only=True)["model"]["decoder.embed_tokens.weight"][0, 0])


def test_dictionaries_go_with_it(checkpoints: list[Path], tmp_path: Path) -> None:
    (tmp_path / "dict.txt").write_text("a 1\n")
    (tmp_path / "elsewhere").mkdir()
    assert average(*checkpoints, "--output", tmp_path / "elsewhere/average.pt") == 0
    assert (tmp_path / "elsewhere/dict.txt").read_text() == "a 1\n"


@pytest.mark.parametrize("name", ["dict.txt", "corpus-manifest.json"])
def test_files_of_another_run_are_kept(
    name: str, checkpoints: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / name).write_text("a 1\n")
    (tmp_path / "elsewhere" / name).write_text("b 1\n")
    assert average(*checkpoints, "--output", tmp_path / "elsewhere/average.pt") == 2
    assert f"elsewhere/{name} differs from" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == [name]
    assert (tmp_path / "elsewhere" / name).read_text() == "b 1\n"


def test_parameters_are_means(checkpoints: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "average.pt"
    assert average(*checkpoints[:3], "--output", output) == 0
    assert capsys.readouterr().out == f"{output}: the average of {', '.join(map(str, checkpoints[:3]))}\n"
    state = torch.load(output, weights_only=True)
    model = state["model"]
    assert list(model) == list(parameters(1))
    assert torch.equal(model["decoder.embed_tokens.weight"], torch.full((3, 2), 4.0))
    assert torch.equal(model["decoder.double_too"], torch.full((3, 2), 4.0, dtype=torch.float64))
    assert torch.equal(model["decoder.half"], torch.tensor([4, 0.1], dtype=torch.float16))
    assert int(model["decoder.dictionary_version"]) == 123456789012345
    shared = (model[f"decoder.{name}.weight"].data_ptr() for name in ("embed_tokens", "output_projection"))
    assert len(set(shared)) == 1
    assert state["cfg"]["model"].dropout == 1
    assert state["optimizer_history"][0]["num_updates"] == 1
    assert state["extra_state"] == {"train_iterator": {"epoch": 1}}
    assert "last_optimizer_state" not in state


def test_sums_do_not_overflow(tmp_path: Path) -> None:
    """65504 is the largest number in float16."""
    paths = [save(tmp_path / f"{i}.pt", 60000 + i) for i in range(2)]
    assert average(*paths, "--output", tmp_path / "average.pt") == 0
    half = torch.load(tmp_path / "average.pt", weights_only=True)["model"]["decoder.half"]
    assert half.dtype == torch.float16
    assert half.isfinite().all()


def test_existing_output(checkpoints: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "average.pt"
    output.write_text("precious")
    assert average(*checkpoints, "--output", output) == 2
    assert capsys.readouterr().err == (
        f"fairseq-stack: error: --output {output} already exists; give --force to replace it\n"
    )
    assert output.read_text() == "precious"
    assert average(*checkpoints, "--output", output, "--force") == 0
    assert mean(output) == 5.5


def changed(name: str, value: Tensor | None) -> Callable[[State], object]:
    """A change of a checkpoint: a parameter with another value, or without one, none at all."""
    return lambda state: state["model"].pop(name) if value is None else state["model"].update({name: value})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("decoder.dictionary_version", torch.tensor(5), "differ in decoder.dictionary_version; expected"),
        ("decoder.half", None, "differ in decoder.half; expected"),
        ("more", torch.ones(1), "differ in more; expected"),
        ("decoder.half", torch.ones(3), "differ in decoder.half; expected"),
        ("decoder.half", torch.tensor([1, torch.inf]), "has parameters that are not finite: decoder.half"),
    ],
)
def test_checkpoints_that_do_not_fit(
    name: str, value: Tensor | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [save(tmp_path / "first.pt", 1), save(tmp_path / "other.pt", 2, changed(name, value))]
    assert_refused(paths, message, tmp_path, capsys)


def assert_refused(
    arguments: Sequence[object], message: str, folder: Path, capsys: pytest.CaptureFixture[str], output: str = "new.pt"
) -> None:
    """Assert that the command ends with this message in one line and changes no file in the folder."""
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert average(*arguments, "--output", folder / output) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def test_mistakes_in_names(checkpoints: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = checkpoints[0]
    for arguments, message in (
        ([first, tmp_path / "none.pt"], f"{tmp_path}/none.pt: No such file"),
        ([tmp_path], f"{tmp_path} is not a fairseq checkpoint: it is a folder"),
    ):
        assert_refused(arguments, message, tmp_path, capsys)
    assert_refused([first], "cannot write", tmp_path, capsys, output="none/average.pt")
