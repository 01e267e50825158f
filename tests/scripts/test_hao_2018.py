"""The workflows of Table 1 of Hao et al. (2018) and of the studies, on tiny data, and commands in forks."""

from __future__ import annotations

import json
import re
import shlex
import statistics
import subprocess
import sys
from pathlib import Path

from fairseq_stack.evaluation.results import Estimate, Model
from fairseq_stack.evaluation.transduction import Accuracy, TransductionResult
from tests.commands.running import Server
from tests.scripts.test_experiments import REPOSITORY, experiment, parse_train

SCRIPTS = REPOSITORY / "scripts" / "experiments"
TABLE_1 = json.loads((SCRIPTS / "hao_2018.json").read_text())


def test_tiny_run(tmp_path: Path, server: Server) -> None:
    """Two trials of a row are trained, scored and tabulated, and nothing is done twice."""
    settings = {"rows": "xor-buffered-linear", "trials": 2, "limit": 10, "options": '"--output-reading read-first"'}
    done = experiment(server, "hao_2018", tmp_path, **settings)
    assert done.returncode == 0, done.stdout + done.stderr
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
    found = [[100 * result["overall"]["accuracy"]["value"] for result in results] for results in trials]
    ours = ["/".join(f"{x:.1f}" for x in (min(x), statistics.median(x), max(x))) for x in found]
    row = TABLE_1["xor-buffered-linear"]
    cells = []
    for split, mine in zip(("valid", "test"), ours, strict=True):
        cells += [mine, *("/".join(map(str, row[source][split])) for source in ("paper", "reference"))]
    markdown = (folder / "table.md").read_text()
    (line,) = re.findall(r"^\| xor +\| +(.*) \|$", markdown, re.MULTILINE)
    assert re.split(r" +\| +", line) == ["buffered, linear", *cells]
    assert trials[1][0]["signature"] in markdown and done.stdout.endswith(markdown)
    assert " & ".join(cells) in re.sub(r" +", " ", (folder / "table.tex").read_text())
    written = json.loads((folder / "table.json").read_text())["xor-buffered-linear"]
    assert [written[split]["trials"] for split in ("valid", "test")] == found
    assert "read-first" in (folder / "xor-buffered-linear" / "trial-1" / "train.out").read_text()

    again = experiment(server, "hao_2018", tmp_path, **settings)
    assert (again.returncode, again.stdout) == (0, ""), again.stderr


def test_the_table_is_planned(tmp_path: Path, server: Server) -> None:
    """18 rows and 10 trials, each on data of its own; the command lines are parsed, but nothing is run."""
    plan = experiment(server, "hao_2018", tmp_path, "--dry-run", "--printshellcmds", epochs=7)
    assert plan.returncode == 0, plan.stderr
    commands = [
        shlex.split(word.partition("=")[2])
        for line in re.findall(r"forks\.py (.*)$", plan.stdout + plan.stderr, re.MULTILINE)
        for word in shlex.split(line)
    ]
    training = [words for words in commands if words[0] == "fairseq-train"]
    preparing = [words for words in commands if words[:3] == ["fairseq-stack", "prepare", "transduction"]]
    assert (len(training), len(preparing)) == (180, 60)
    assert sum(words[0] == "fairseq-preprocess" for words in commands) == 60
    assert sum(words[:2] == ["fairseq-stack", "evaluate-transduction"] for words in commands) == 360
    assert len({words[words.index("--save-dir") + 1] for words in training}) == 180
    data = {words[1].removesuffix("/data-bin") for words in training}
    assert data == {words[3] for words in preparing}
    for words in training[::10]:
        task = words[1].split("/")[-3]
        on_grammar = task in ("parenthesis", "formula", "agreement")
        assert words[words.index("--reduction") + 1] == ("sum" if on_grammar else "position_mean_sum")
        assert ("xor" in words[words.index("--arch") + 1]) == ("xor" in task)
        assert words[words.index("--max-epoch") + 1] == "7"
        parse_train(words[2:])


def test_the_figures_of_the_paper_and_the_reference() -> None:
    assert len(TABLE_1) == 18
    for row in TABLE_1.values():
        for source in ("paper", "reference"):
            for split in ("valid", "test"):
                assert row[source][split] == sorted(row[source][split])
                assert all(0 <= figure <= 100 for figure in row[source][split])


def test_studies(tmp_path: Path, server: Server) -> None:
    """A network is trained, scored on both test sets, tabulated and drawn."""
    done = experiment(server, "hao_studies", tmp_path, tasks="xor", networks="read-first-n", limit=10, trials=2)
    assert done.returncode == 0, done.stdout + done.stderr
    folder = tmp_path / "hao-studies" / "epochs-1-limit-10-trials-2-networks-read-first-n" / "xor"
    trials = [
        tmp_path / f"hao-2018/epochs-1-limit-10-output-reading-read-first-time-steps-n/xor-buffered-linear/trial-{n}"
        for n in (1, 2)
    ]
    values = [json.loads((trial / "test.json").read_text())["overall"]["accuracy"]["value"] for trial in trials]
    shown = "/".join(f"{100 * x:.1f}" for x in (min(values), statistics.median(values), max(values)))
    table = (folder / "table.md").read_text()
    row = rf"^\| read-first-n \| +[\d./]+ \| {shown} \| +0 of 2 \| +\| +\d of 2 \|$"
    assert re.search(row, table, re.MULTILINE), table
    longer = json.loads((trials[0] / "longer.json").read_text())
    assert max(scores["length"] for scores in longer["by_length"]) > 24
    assert (folder / "lengths.png").stat().st_size > 5000


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
            result = TransductionResult("signature", "reversal", split, ("0",), 10, 0.95, model, overall, ())
            result.write(trials[-1] / f"{split}.json")
    command = [sys.executable, str(SCRIPTS / "hao_studies.py"), str(tmp_path / "table.md")]
    subprocess.run([*command, f"read-first-n={','.join(map(str, trials))}"], check=True)
    row = "| read-first-n | 50.0/98.5/100.0 | 50.0/67.5/100.0 | 3 of 4 | 60.0/75.0/100.0 | 1 of 4 |"
    assert row in re.sub(" +", " ", (tmp_path / "table.md").read_text())


def test_the_studies_are_planned(tmp_path: Path, server: Server) -> None:
    """Ten networks and 20 trials; what Table 1 has trained has the same folders."""
    plan = experiment(server, "hao_studies", tmp_path, "--dry-run", "--printshellcmds", epochs=7)
    assert plan.returncode == 0, plan.stderr
    text = plan.stdout + plan.stderr
    commands = [
        shlex.split(word.partition("=")[2])
        for line in re.findall(r"forks\.py (.*)$", text, re.MULTILINE)
        for word in shlex.split(line)
    ]
    trainings = {tuple(words) for words in commands if words[0] == "fairseq-train"}
    assert len(trainings) == 200
    assert sum("hao-2018/epochs-7/reversal-buffered-linear/trial-20" in words for words in trainings) == 1
    for words in sorted(trainings)[:3]:
        parse_train(list(words[2:]))


def test_a_command_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    wrong = f"wrong.out=fairseq-stack show {tmp_path}/nowhere"
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
        f"fairseq-stack show {tmp_path}/nowhere ended with exit code 2; wrong.out ends:", said
    ]  # fmt: skip
