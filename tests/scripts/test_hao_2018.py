"""The workflows of Table 1 of Hao et al. (2018) and of the studies, on tiny data, and commands in forks."""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack.evaluation.results import Estimate, Model
from fairseq_stack.evaluation.transduction import Accuracy, TransductionResult
from tests.commands.running import Server
from tests.scripts.test_experiments import REPOSITORY, experiment

SCRIPTS = REPOSITORY / "scripts" / "experiments"
TABLE = "table-rows-xor-buffered-linear-trials-2"
TABLE_1 = json.loads((SCRIPTS / "hao_2018.json").read_text())


def table_of_trials(tmp_path: Path, server: Server) -> tuple[Path, list[str]]:
    """Train, score and tabulate two trials of a row; return their folder, and the cells of the table that are ours."""
    settings: dict[str, Any] = {"rows": "xor-buffered-linear", "options": '"--output-reading read-first"'}
    done = experiment(server, "hao_2018", tmp_path, trials=2, limit=10, **settings)
    folder = tmp_path / "hao-2018" / "epochs-1-limit-10-output-reading-read-first"
    trials = [
        [json.loads((folder / f"xor-buffered-linear/trial-{trial}/{split}.json").read_text()) for trial in (1, 2)]
        for split in ("valid", "test")
    ]
    assert trials[0][0]["signature"] != trials[0][1]["signature"]
    assert trials[1][0]["signature"] == trials[1][1]["signature"]
    assert {result["model"]["arch"] for results in trials for result in results} == {
        "neural_stack_buffered_linear_xor_2018"
    }
    accuracies = [[100 * result["overall"]["accuracy"]["value"] for result in results] for results in trials]
    written = json.loads((folder / f"{TABLE}.json").read_text())["xor-buffered-linear"]
    assert [written[split]["trials"] for split in ("valid", "test")] == accuracies
    markdown = (folder / f"{TABLE}.md").read_text()
    assert trials[1][0]["signature"] in markdown and done.stdout.endswith(markdown)
    return folder, ["/".join(f"{x:.1f}" for x in (min(x), statistics.median(x), max(x))) for x in accuracies]


@pytest.mark.hostile
def test_a_table(tmp_path: Path, server: Server) -> None:
    """Our figures are next to those of the paper and of the reference implementation."""
    folder, ours = table_of_trials(tmp_path, server)
    row = TABLE_1["xor-buffered-linear"]
    cells = []
    for split, mine in zip(("valid", "test"), ours, strict=True):
        cells += [mine, *("/".join(map(str, row[source][split])) for source in ("paper", "reference"))]
    (line,) = re.findall(r"^\| xor +\| +(.*) \|$", (folder / f"{TABLE}.md").read_text(), re.MULTILINE)
    assert re.split(r" +\| +", line) == ["buffered, linear", *cells]
    assert "read-first" in (folder / "xor-buffered-linear" / "trial-1" / "train.out").read_text()


@pytest.mark.hostile
def test_a_study(tmp_path: Path, server: Server) -> None:
    """A study of the same networks goes on with the trials of the table."""
    folder, ours = table_of_trials(tmp_path, server)
    experiment(server, "hao_studies", tmp_path, tasks="xor", networks="read-first-2n", trials=2, limit=10)
    study = tmp_path / "hao-studies" / "epochs-1-limit-10-trials-2-networks-read-first-2n" / "xor"
    table = (study / "table.md").read_text()
    row = rf"^\| read-first-2n \| {ours[0]} \| {ours[1]} \| +0 of 2 \| +\| +\d of 2 \|$"
    assert re.search(row, table, re.MULTILINE), table
    longer = json.loads((folder / "xor-buffered-linear" / "trial-1" / "longer.json").read_text())
    assert max(scores["length"] for scores in longer["by_length"]) > 24
    assert (study / "lengths.png").stat().st_size > 5000


def test_the_table_of_the_studies(tmp_path: Path) -> None:
    """Trials with 98 % and more in development count as learned."""
    trials = []
    for name, *scores in [("a", 0.5, 0.5), ("b", 0.99, 0.75), ("c", 0.98, 1.0), ("d", 1.0, 0.6)]:
        trials.append(tmp_path / name)
        trials[-1].mkdir()
        for split, value in zip(("valid", "test"), scores, strict=True):
            share = Estimate(value, 0, 1)
            overall = Accuracy(100, 100, round(100 * value), share, share)
            model = Model("a.pt", "neural_stack", 54)
            result = TransductionResult("signature", model, "reversal", split, ("0",), overall, ())
            result.write(trials[-1] / f"{split}.json")
    command = [sys.executable, str(SCRIPTS / "table.py"), "studies", str(tmp_path / "table.md")]
    subprocess.run([*command, f"read-first-n={','.join(map(str, trials))}"], check=True)
    row = "| read-first-n | 50.0/98.5/100.0 | 50.0/67.5/100.0 | 3 of 4 | 60.0/75.0/100.0 | 1 of 4 |"
    assert row in re.sub(" +", " ", (tmp_path / "table.md").read_text())


def test_a_command_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    wrong = f"wrong.out=fairseq-stack average {tmp_path}/nowhere --output average.pt"
    command = [
        sys.executable,
        str(SCRIPTS / "forks.py"),
        "right.out=fairseq-stack user-dir",
        wrong,
        "a/more.out=fairseq-stack user-dir",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert (tmp_path / "right.out").read_text() == (tmp_path / "a/more.out").read_text() != ""
    said = (tmp_path / "wrong.out").read_text().strip()
    assert done.stderr.splitlines() == [
        f"fairseq-stack average {tmp_path}/nowhere --output average.pt ended with exit code 2; wrong.out ends:", said
    ]  # fmt: skip
