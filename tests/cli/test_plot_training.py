"""fairseq-stack plot training: figures from the logs of training runs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack.plots.style import STYLES
from tests.cli.test_plot import legend_of, lines_of

pytest.importorskip("matplotlib")


def write_run(folder: Path, losses: dict[int, float], data: str = "corpus/data-bin", **figures: float) -> None:
    """The log of a run with 100 updates in an epoch, and these losses in nats per token by updates."""
    lines: list[str] = [f"{{'data': '{data}'}}", "num. shared model params: 10 (num. trained: 10)"]
    for updates, loss in losses.items():
        valid = {"loss": loss / math.log(2), **figures, "num_updates": updates}
        lines.append(json.dumps({"epoch": 1, "update": updates / 100, "num_updates": str(updates)}))
        lines.append(json.dumps({"epoch": 1, **{f"valid_{name}": str(value) for name, value in valid.items()}}))
    folder.mkdir(parents=True)
    (folder / "train.log").write_text("\n".join(lines), encoding="utf-8")


def write_bound(corpus: Path, bound: float) -> None:
    corpus.mkdir(parents=True)
    (corpus / "lower_bound.json").write_text(json.dumps({"valid": {"nats_per_token_with_eos": bound}}))


def test_runs_without_names_are_called_after_their_folders(
    tmp_path: Path, plot: Callable[..., str], drawn: list[Any]
) -> None:
    write_run(tmp_path / "out" / "tf", {50: 2.0, 100: 1.5})
    write_run(tmp_path / "out" / "mine" / "nd", {50: 3.0, 100: 0.5})
    assert plot(f"training out/tf {tmp_path}/out/mine/nd/train.log --output a.png") == "a.png\n"
    (axes,) = drawn[0].axes
    assert lines_of(axes) == [("tf", {50: 2.0, 100: 1.5}), ("mine/nd/train.log", {50: 3.0, 100: 0.5})]
    assert axes.get_ylabel() == "validation loss\n(nats per token)"
    assert (axes.get_xlabel(), axes.get_yscale(), axes.get_title()) == ("updates", "linear", "")


def test_the_best_restart_is_thick(tmp_path: Path, plot: Callable[..., str], drawn: list[Any]) -> None:
    for number, least in enumerate((1.0, 0.5, 0.75)):
        write_run(tmp_path / f"nd-{number}", {50: 2.0, 100: least}, bleu=10 * least)
    plot("training Tf+Nd=nd-0 Tf+Nd=nd-1 Tf+Nd=nd-2 --metric bleu -o a.svg")
    (axes,) = drawn[0].axes
    assert lines_of(axes) == [
        ("", {50: 10.0, 100: 10.0}),
        ("Tf+Nd", {50: 5.0, 100: 5.0}),
        ("", {50: 7.5, 100: 7.5}),
    ]
    assert axes.get_ylabel() == "validation bleu"
    widths = [line.get_linewidth() for line in axes.get_lines()]
    assert widths[1] > widths[0] == widths[2]
    assert {line.get_color() for line in axes.get_lines()} == {STYLES[2]["color"]}


def test_panels_with_the_difference_to_the_bound_of_each_run(
    tmp_path: Path, plot: Callable[..., str], drawn: list[Any]
) -> None:
    """Restarts may have data of their own; the best is the nearest to its own bound."""
    for language, seed, least, loss in (("dyck", 1, 0.5, 0.75), ("dyck", 2, 0.125, 0.625), ("hardest", 1, 0.25, 0.5)):
        write_bound(tmp_path / language / f"corpus-{seed}", least)
        write_run(tmp_path / language / f"tf-{seed}", {50: 1.0, 100: loss}, f"{language}/corpus-{seed}/data-bin")
    plot("training dyck:Tf=dyck/tf-1 dyck:Tf=dyck/tf-2 hardest:Tf=hardest/tf-1 --bound --epochs -o a.pdf")
    dyck, hardest = drawn[0].axes
    bound = ("lower bound", {0: 0.0, 1: 0.0})
    assert lines_of(dyck) == [("Tf", {0.5: 0.5, 1.0: 0.25}), ("", {0.5: 0.875, 1.0: 0.5}), bound]
    assert lines_of(hardest) == [("Tf", {0.5: 0.75, 1.0: 0.25}), bound]
    assert [axes.get_title() for axes in (dyck, hardest)] == ["Dyck", "hardest"]
    assert [axes.get_xlabel() for axes in drawn[0].axes] == ["epochs", "epochs"]
    assert dyck.get_ylabel() == "cross-entropy difference\n(nats per symbol)"
    assert legend_of(drawn[0]) == ["Tf", "lower bound"]


def test_a_logarithmic_scale_names_what_it_cannot_show(
    tmp_path: Path, plot: Callable[..., str], drawn: list[Any]
) -> None:
    write_bound(tmp_path / "dyck" / "corpus-1", 0.5)
    for name, least in (("Sup", 0.5), ("Tf", 0.75)):
        write_run(tmp_path / "dyck" / name, {50: 1.0, 100: least}, "dyck/corpus-1/data-bin")
    plot("training dyck:Sup=dyck/Sup dyck:Tf=dyck/Tf --bound --log -o a.pdf")
    (note,) = drawn[0].axes[0].texts
    assert note.get_text().replace("\n", " ") == "points at 0 or below are not shown: Sup"


def test_mistakes_in_training_runs(tmp_path: Path, refusal: Callable[[str], str]) -> None:
    write_run(tmp_path / "tf", {50: 1.0})
    write_run(tmp_path / "zero", {100: 1.0}, bleu=0.0)
    (tmp_path / "short").write_text('num. shared model params: 10\n{"valid_loss": "1", "valid_num_updates": "5"}\n')
    cases = {
        "zero --metric bleu --log -o a.png": "a logarithmic scale needs values greater than 0; there are none; leave "
        "out --log",
        "short --epochs -o a.png": "short does not say how many updates an epoch has; leave out --epochs",
        "tf nowhere -o a.png": "nowhere: No such file or directory",
        "tf tf -o a.png": "tf is given twice",
        "tf -o a.jpg": "a.jpg: expected a name that ends with one of .pdf, .png, .svg",
        "tf -o no/a.png": "cannot write no/a.png: No such file or directory",
        "=tf -o a.png": "=tf: expected NAME=PATH",
        "dyck:=tf -o a.png": "dyck:=...: expected the name of a model after the colon",
    }
    for command, message in cases.items():
        assert refusal(f"training {command}") == message
