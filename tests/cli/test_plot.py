"""fairseq-stack plot: figures from files of results."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack.cli.plot.syntax import read_accuracies
from fairseq_stack.evaluation.blimp import Accuracy as blimp_accuracy
from fairseq_stack.evaluation.blimp import BLiMPResult
from fairseq_stack.evaluation.cfl_result import NOTE_ON_BOUNDS
from fairseq_stack.evaluation.results import Estimate, Model
from fairseq_stack.evaluation.syntaxgym import (
    CategoryScore,
    Prediction,
    SuiteScore,
    SyntaxGymResult,
)
from fairseq_stack.evaluation.transduction import Accuracy, LengthAccuracy, TransductionResult
from fairseq_stack.plots.style import STYLES
from tests.evaluation.cfl_results import TF, TF_VALID, cfl_result, write_results

pytest.importorskip("matplotlib")


PRICE, BOUND = "lower bound, length unknown", "lower bound, length known"


def lines_of(axes: Any) -> list[tuple[str, dict[float, float]]]:
    """The label and the points of each line; the label is "" if the legend does not show it."""
    return [
        (
            "" if line.get_label().startswith("_") else line.get_label(),
            {x: round(y, 9) for x, y in zip(*line.get_data(), strict=True)},
        )
        for line in axes.get_lines()
    ]


def legend_of(figure: Any) -> list[str]:
    legends = list(figure.legends) + [axes.get_legend() for axes in figure.axes]
    (legend,) = filter(None, legends)
    return [text.get_text() for text in legend.get_texts()]


def test_the_difference_by_length(tmp_path: Path, plot: Callable[..., str], drawn: list[Any]) -> None:
    write_results(tmp_path)
    printed = plot(f"lengths {TF} {TF_VALID} Tf+Nd=nd.json -o a.png")
    best = "The best of 1 to 2 runs, by the cross-entropy difference on the validation data."
    assert printed == f"{best}\n{NOTE_ON_BOUNDS}\na.png\n"
    dyck, hardest = drawn[0].axes
    bound = (BOUND, {0: 0.0, 1: 0.0})
    nd = ("Tf+Nd", {40: 0.125, 42: 0.25, 44: 0.5})
    other = ("", {40: 0.25, 42: 0.5, 44: 1.0})
    assert lines_of(dyck) == [("Tf", {40: 0.5, 42: 1.0, 44: 2.0}), nd, price_of_two_lengths(), bound, other]
    tf, (_, price), line = lines_of(hardest)
    notes = [[text.get_text() for text in axes.texts] for axes in (dyck, hardest)]
    assert notes == [["Tf: best of 2, others thin"], ["not shown: Tf+Nd"]]
    assert [tf, line] == [("Tf", {40: 0.25, 42: 0.5, 44: 1.0}), bound]
    assert price == pytest.approx({40: math.log(3) / 41, 42: math.log(3) / 43, 44: math.log(3) / 45})
    assert [line.get_color() for line in dyck.get_lines()[:2]] == [STYLES[0]["color"], STYLES[2]["color"]]
    assert [axes.get_title() for axes in drawn[0].axes] == ["Dyck", "hardest CFL"]
    training = [axes.patches[0] for axes in drawn[0].axes]
    assert [(box.get_x(), box.get_width()) for box in training] == [(40, 2), (40, 4)]
    assert legend_of(drawn[0]) == ["Tf", "Tf+Nd", PRICE, BOUND, "training lengths"]
    assert edges(dyck.collections[0]) == {40: (0.25, 1.0), 42: (0.5, 2.0), 44: (1.0, 4.0)}


def price_of_two_lengths() -> Any:
    return PRICE, pytest.approx({40: math.log(2) / 41, 42: math.log(2) / 43})


def edges(band: Any) -> dict[float, tuple[float, float]]:
    """The lower and the upper edge of a band."""
    actual: dict[float, list[float]] = {}
    for x, y in band.get_paths()[0].vertices.tolist():
        actual.setdefault(x, []).append(round(y, 9))
    return {x: (min(y), max(y)) for x, y in actual.items()}


def test_alphabets(tmp_path: Path, plot: Callable[..., str], drawn: list[Any]) -> None:
    """Two languages; the default size has no number in the name, and other parameters stay in it."""
    for name, difference, language in (
        ("a", 0.5, "marked-reversal"),
        ("b", 0.25, "marked-reversal, symbol types 40"),
        ("c", 0.125, "dyck, bracket types 8, mean bracket splits 2"),
        ("d", 1.0, "marked-reversal, symbol types 8"),
    ):
        cfl_result(difference, language=language, checkpoint=name).write(tmp_path / f"{name}.json")
    assert plot("alphabets Tf=a.json Tf=b.json Tf+Nd=b.json Tf=c.json Tf=d.json -o a.png") == "a.png\n"
    reversal, dyck = drawn[0].axes
    bound = ("lower bound", {0: 0.0, 1: 0.0})
    assert lines_of(reversal) == [("Tf", {2: 0.5, 8: 1.0, 40: 0.25}), ("Tf+Nd", {40: 0.25}), bound]
    assert lines_of(dyck) == [("Tf", {8: 0.125}), bound]
    assert [axes.get_title() for axes in drawn[0].axes] == ["$w$#$w^R$", "Dyck, mean bracket splits 2"]
    assert edges(reversal.collections[0]) == {2: (0.25, 1.0), 8: (0.5, 2.0), 40: (0.125, 0.5)}


def test_a_language_without_an_alphabet(tmp_path: Path, refusal: Callable[[str], str]) -> None:
    cfl_result(language="my.grammar").write(tmp_path / "a.json")
    assert refusal("alphabets x=a.json -o a.png") == "my.grammar has no number of symbols that could be varied"


def transduction(
    by_length: dict[int, float], task: str = "reversal", split: str = "test", checkpoint: str = "c"
) -> TransductionResult:
    """A made-up result."""
    scores = {n: Accuracy(1, 1, 1, Estimate(value, value, value), Estimate(1, 1, 1)) for n, value in by_length.items()}
    lengths = tuple(LengthAccuracy(**vars(accuracy), length=n) for n, accuracy in scores.items())
    model = Model(checkpoint, "arch", 42)
    return TransductionResult("signature", model, task, split, ("0",), next(iter(scores.values())), lengths)


def test_accuracy_by_length(tmp_path: Path, plot: Callable[..., str], drawn: list[Any]) -> None:
    """A line for each trial; those with 98 % on validation data are coloured and above the others."""
    for name, by_length in (("a", {4: 0.5, 2: 1.0}), ("b", {2: 0.5, 4: 0.25}), ("c", {2: 0.25}), ("d", {2: 0.75})):
        transduction(by_length, "xor" if name == "d" else "reversal", checkpoint=name).write(tmp_path / f"{name}.json")
    for name, accuracy in (("a", 0.97), ("b", 0.98), ("c", 0.5)):
        valid = transduction({2: accuracy}, split="valid", checkpoint=name)
        valid.write(tmp_path / f"{name}-valid.json")
    arguments = "read=a-valid.json read=b-valid.json read=c-valid.json read=a.json read=b.json read=c.json"
    assert plot(f"accuracy {arguments} read=d.json dequeue=b.json --longest 3 -o a.png") == "a.png\n"
    read, xor, dequeue = drawn[0].axes[:3]
    learned, other = "at least 98 % in validation", "less than 98 % in validation"
    assert lines_of(read) == [(learned, {2: 50, 4: 25}), (other, {2: 100, 4: 50}), (other, {2: 25})]
    colours = [line.get_color() for line in read.get_lines()]
    assert colours[0] != colours[1] == colours[2] and [text.get_text() for text in read.texts] == ["1 of 3 learned"]
    assert lines_of(xor) == [("a trial", {2: 75})]
    assert lines_of(dequeue) == [("a trial", {2: 50, 4: 25})]
    assert [axes.get_title() for axes in drawn[0].axes[:3]] == ["reversal: read", "xor: read", "reversal: dequeue"]
    assert (read.get_ylabel(), read.get_xlabel()) == ("accuracy (%)", "length")
    assert (read.patches[0].get_x(), read.patches[0].get_width()) == (0, 3)


def test_accuracies_that_cannot_be_compared(tmp_path: Path, refusal: Callable[[str], str]) -> None:
    for name, split in (("a", "test"), ("b", "train"), ("c", "valid")):
        transduction({2: 1.0}, split=split, checkpoint=name).write(tmp_path / f"{name}.json")
    assert refusal("accuracy x=a.json x=b.json -o a.png") == (
        "a.json is on the split test, and b.json on train; give results on one of them"
    )
    assert refusal("accuracy x=a.json y=a.json x=a.json -o a.png") == "a.json is given twice for x"
    assert refusal("accuracy x=a.json x=c.json -o a.png") == (
        "reversal: x: the results on validation data are not of the same checkpoints in the same order"
    )


def blimp(value: float, sha: str = "1") -> BLiMPResult:
    """A made-up result; the interval reaches from half to twice the accuracy."""

    def row(name: str, value: float) -> blimp_accuracy:
        return blimp_accuracy(name, 10, 0.0, 0.0, Estimate(value, value / 2, value * 2))

    rows = (row("x_y", value), row("z", value / 2))
    model = Model("checkpoint", "arch", 42)
    return BLiMPResult(f"pairs:2|sha:{sha}|text:a", model, row("all", value), (), rows, ())


def test_syntax(tmp_path: Path, plot: Callable[..., str], drawn: list[Any]) -> None:
    """A row for each phenomenon; restarts have their mean, least and greatest accuracy; one run its interval."""
    for name, value in (("a", 0.5), ("b", 0.25)):
        blimp(value).write(tmp_path / f"{name}.json")
    categories = (CategoryScore("licensing", 2, 0.75),)
    pair, both = "(1;%a%) < (1;%b%)", "((1;%a%) < (1;%b%)) & ((1;%c%) < (1;%d%))"
    scores = tuple(
        SuiteScore(formula, "licensing", 9, 0.0, 0.5, (Prediction(formula, 0.5),), ()) for formula in (pair, both)
    )
    SyntaxGymResult("suites:1|sha:2", Model("c", "arch", 42), 0.5, categories, scores).write(tmp_path / "c.json")
    assert plot("syntax Tf=a.json Tf=b.json Tf+Nd=b.json Tf=c.json -o a.png") == "a.png\n"
    pairs, suites = drawn[0].axes
    assert [text.get_text() for text in pairs.get_yticklabels()] == ["x y", "z", "all"]
    assert [(label, [round(x, 9) for x in points]) for label, points in lines_of(pairs)] == [
        ("Tf", [37.5, 18.75]), ("Tf+Nd", [25, 12.5]), *[("chance", [50])] * 3,
    ]  # fmt: skip
    assert [line.get_xdata()[0] for line in suites.get_lines()[1:]] == pytest.approx([37.5] * 2, abs=0.8)
    assert pairs.get_xlabel() == "accuracy (%)\nlines: range of 2 runs, bootstrap interval of a single run"
    assert suites.get_xlabel() == "accuracy (%)"
    ranges = [[[x for x, _ in line] for line in lines.get_segments()] for lines in pairs.collections]
    assert ranges == [[[25, 50], [12.5, 25], [25, 50]], [[12.5, 50], [6.25, 25], [12.5, 50]]]
    assert [text.get_text() for text in suites.get_yticklabels()] == ["licensing", "all"]
    assert (pairs.get_title(), suites.get_title(), legend_of(drawn[0])) == (
        *("BLiMP", "SyntaxGym"),
        ["Tf", "Tf+Nd", "chance"],
    )


def test_accuracies_on_different_sentences(tmp_path: Path, refusal: Callable[[str], str]) -> None:
    blimp(0.5).write(tmp_path / "a.json")
    blimp(0.5, sha="2").write(tmp_path / "b.json")
    assert refusal("syntax x=a.json y=b.json -o a.png") == (
        "a.json and b.json cannot be compared: they are on different sentences of BLiMP, or count ends differently"
    )
    ends = dataclasses.replace(blimp(0.5), signature=blimp(0.5).signature + "|end:no")
    ends.write(tmp_path / "b.json")
    assert "they are on different sentences of BLiMP" in refusal("syntax x=a.json y=b.json -o a.png")
    parsed = dataclasses.replace(blimp(0.5), signature=blimp(0.5).signature + "|beam:2|surprisals:conditional")
    parsed.write(tmp_path / "b.json")
    assert len(read_accuracies([f"x={tmp_path}/a.json", f"y={tmp_path}/b.json"])["BLiMP"]) == 2
    (tmp_path / "c.json").write_text("[]")
    assert refusal("syntax x=c.json -o a.png") == "c.json is not a result of fairseq-stack evaluate-blimp"


@pytest.mark.parametrize("suffix", ["pdf", "png", "svg"])
def test_the_same_results_give_the_same_figure(
    tmp_path: Path, plot: Callable[..., str], suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_results(tmp_path)
    for time in ("0", "1000000000"):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", time)  # what files that hold the time are made with
        plot(f"lengths Tf=tf-1.json Tf+Nd=nd.json -o {time}.{suffix}")
    assert (tmp_path / f"0.{suffix}").read_bytes() == (tmp_path / f"1000000000.{suffix}").read_bytes()
