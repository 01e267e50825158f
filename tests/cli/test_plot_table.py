"""fairseq-stack plot table: tables from files of results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.evaluation.cfl_results import TF, TF_VALID, cfl_result, write_results


def test_a_table(tmp_path: Path, plot: Callable[..., str]) -> None:
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


def test_means_of_restarts(tmp_path: Path, plot: Callable[..., str]) -> None:
    write_results(tmp_path)
    rows = plot(f"table {TF} Tf|*`=nd.json --mean").splitlines()
    assert rows[1] == "Mean and standard deviation of 1 to 2 runs."
    assert rows[5:7] == [
        "| Tf       | 0.375 ± 0.177 |   **0.062** |",
        r"| Tf\|\*\` |     **0.125** |           - |",
    ]


def test_equal_figures_are_all_bold(tmp_path: Path, plot: Callable[..., str]) -> None:
    for name, difference in (("a", -0.0001), ("b", 0.0004), ("c", 0.001)):
        cfl_result(difference).write(tmp_path / f"{name}.json")
    rows = plot("table a=a.json b=b.json c=c.json").splitlines()[4:7]
    assert [row.split()[3] for row in rows] == ["**0.000**", "**0.000**", "0.001"]


def test_mistakes_in_results(tmp_path: Path, refusal: Callable[[str], str]) -> None:
    write_results(tmp_path)
    cases = {
        "table tf-1.json": "tf-1.json: expected NAME=RESULT",
        "table Tf=nowhere.json": "nowhere.json: No such file or directory",
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
