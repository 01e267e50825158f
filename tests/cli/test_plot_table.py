"""fairseq-stack plot table: tables in Markdown and in LaTeX, from files of results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fairseq_stack.evaluation.cfl_result import NOTE_ON_BOUNDS, NextSymbol
from tests.evaluation.cfl_results import TF, TF_VALID, cfl_result, write_results


def test_a_table_in_markdown(tmp_path: Path, plot: Callable[..., str]) -> None:
    write_results(tmp_path)
    assert plot(f"table {TF} {TF_VALID} Tf+Nd=nd.json --output a.md") == "a.md\n"
    expected = """\
Cross-entropy difference (nats per symbol), on test; less is better.
The best of 1 to 2 runs, by the cross-entropy difference on the validation data.

| model |      dyck | hardest-cfl |
| ----- | --------: | ----------: |
| Tf    |     0.250 |   **0.062** |
| Tf+Nd | **0.125** |           - |

The bound of all strings has the cost of the length, the bound of one length does not: the difference of all strings \
can be less than that of every length.

`language:dyck|split:test|version:fairseq_stack-1`
`language:hardest-cfl|split:test|version:fairseq_stack-1`
"""
    assert (tmp_path / "a.md").read_text(encoding="utf-8") == expected


def test_a_table_in_latex(tmp_path: Path, plot: Callable[..., str]) -> None:
    write_results(tmp_path)
    plot(f"table {TF} Tf_&Nd=nd.json --mean --output a.tex")
    expected = r"""% Cross-entropy difference (nats per symbol), on test; less is better.
% Mean and standard deviation of 1 to 2 runs.
\begin{tabular}{lrr}
\toprule
model    & dyck              & hardest-cfl    \\
\midrule
Tf       & 0.375 $\pm$ 0.177 & \textbf{0.062} \\
Tf\_\&Nd & \textbf{0.125}    & --             \\
\bottomrule
\end{tabular}
% {NOTE_ON_BOUNDS}
% language:dyck|split:test|version:fairseq_stack-1
% language:hardest-cfl|split:test|version:fairseq_stack-1
"""
    expected = expected.replace("{NOTE_ON_BOUNDS}", NOTE_ON_BOUNDS)
    assert (tmp_path / "a.tex").read_text(encoding="utf-8") == expected
    assert plot(f"table {TF} Tf_&Nd=nd.json --mean --format latex") == expected


def test_equal_figures_are_all_bold_and_greater_ones_may_be_better(tmp_path: Path, plot: Callable[..., str]) -> None:
    for name, difference, correct in (("a", -0.0001, 3), ("b", 0.0004, 4), ("c", 0.001, 4)):
        cfl_result(difference, accuracy=NextSymbol(8, correct)).write(tmp_path / f"{name}.json")
    rows = plot("table a=a.json b=b.json c=c.json").splitlines()[4:7]
    assert [row.split()[3] for row in rows] == ["**0.000**", "**0.000**", "0.001"]
    text = plot("table a=a.json b=b.json c=c.json --metric accuracy")
    assert text.startswith("Accuracy of the next symbol where only one is possible (%), on test; more is better.\n")
    assert [row.split()[3] for row in text.splitlines()[4:7]] == ["37.5", "**50.0**", "**50.0**"]
    assert [row.split()[3] for row in plot("table a=a.json --metric samples").splitlines()[4:5]] == ["**41.0**"]
    assert [row.split()[3] for row in plot("table c=c.json --metric cross-entropy").splitlines()[4:5]] == ["**0.501**"]


def test_mistakes_in_results(tmp_path: Path, refusal: Callable[[str], str]) -> None:
    write_results(tmp_path)
    cases = {
        "table tf-1.json": "tf-1.json: expected NAME=RESULT",
        "table Tf=nowhere.json": "nowhere.json: No such file or directory",
        "table Tf=nd.json -o nd.json": "nd.json: expected a name that ends with one of .md, .tex",
        "table Tf=nd.json -o a.tex --format markdown": "a.tex is a name for latex, but --format is markdown",
        "table Tf=tf-hardest.json --metric samples": "no result has the score 'samples in the language (%)'",
    }
    for command, message in cases.items():
        assert refusal(command) == message


def test_without_matplotlib_there_are_tables(
    tmp_path: Path, plot: Callable[..., str], refusal: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_results(tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert refusal("lengths Tf=nd.json -o a.png").startswith("this needs matplotlib, which is not installed; install")
    assert "**0.125**" in plot("table Tf=nd.json")
