"""The workflows of scripts/experiments, on tiny corpora."""

from __future__ import annotations

import gzip
import random
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.commands.running import REPOSITORY, Server
from tests.documents import Document
from tests.helpers import hostile

LINES = 60
CORPORA = {
    "multi30k": [f"{split}.{language}" for split in ("train", "val", "test_2016_flickr") for language in ("de", "en")],
    "ptb": [f"ptb.{split}.txt" for split in ("train", "valid", "test")],
    "ptb_stream": [f"ptb.{split}.txt" for split in ("train", "valid", "test")],
}
KIND = {"multi30k": "sup", "ptb": "sup", "ptb_stream": "lstm"}


def experiment(
    server: Server, name: str, out: Path, *options: str, code: int = 0, **settings: object
) -> subprocess.CompletedProcess[str]:
    """Run an experiment with the commands of a server, for one epoch unless told otherwise; None sets nothing.

    It ends with the exit code ``code``.
    """
    folder = REPOSITORY / "scripts" / "experiments"
    pieces = {"pieces": 60} if name == "multi30k" else {}
    all_settings = {"epochs": 1, **pieces, **settings}
    values = [f"{key}={value}" for key, value in all_settings.items() if value is not None]
    command = ["snakemake", "--snakefile", str(folder / f"{name}.smk"), "--profile", str(folder / "profiles/local")]
    done = subprocess.run(
        [*command, "--directory", str(out), "--cores", "2", *options, "--config", *values],
        capture_output=True,
        text=True,
        env={**server.environment(), "CUDA_VISIBLE_DEVICES": ""},
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def planned_trainings(server: Server, name: str, out: Path, **settings: Any) -> set[tuple[str, ...]]:
    """The words of each fairseq-train that an experiment would run."""
    return training_commands(experiment(server, name, out, "--dry-run", "--printshellcmds", **settings))


def write_corpus(folder: Path, name: str) -> Path:
    """Write the files of an experiment; the first one is compressed."""
    draw = random.Random(1)
    folder.mkdir()
    for number, file in enumerate(CORPORA[name]):
        lines = (" ".join(draw.choices(["ein", "blauer", "hund", "rennt", "schnell"], k=5)) for _ in range(LINES))
        text = "".join(f" {line} \n" for line in lines).encode()
        path = folder / file
        if number == 0:
            path.with_name(f"{file}.gz").write_bytes(gzip.compress(text))
        else:
            path.write_bytes(text)
    return folder


def times(folder: Path) -> dict[Path, int]:
    """When each file was last written."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def markdown_of(out: Path, name: str) -> str:
    """The table of an experiment of two runs."""
    (path,) = out.glob("*/*epochs-1/table-kinds-*-seeds-1+2.md")
    text = path.read_text(encoding="utf-8")
    number = r" \| +\d+\.\d\d"
    row = rf"^\| {KIND[name]} +\| +[\d,]+ \| +\d+ \| +\d+ s{number}{number}({number})? \|\n\nThe best of 2 runs"
    assert re.search(row, text, re.MULTILINE), text
    return text


@pytest.mark.parametrize(("name", "score"), [("multi30k", "BLEU"), hostile("ptb_stream", "test ppl")])
def test_it_runs(tmp_path: Path, name: str, score: str, server: Server) -> None:
    data, out = write_corpus(tmp_path / "my data", name), tmp_path / "my out"
    experiment(server, name, out, data=data, kinds=KIND[name], seeds="1,2")
    assert f"`{score}|data:test" in markdown_of(out, name)


def test_it_runs_once(tmp_path: Path, server: Server) -> None:
    """What was complete before is kept, and an interrupted training run continues."""
    out = tmp_path / "my out"
    settings: dict[str, Any] = {"data": write_corpus(tmp_path / "my data", "ptb"), "kinds": "sup"}
    first = experiment(server, "ptb", out, **settings, seeds="1,2")
    text = markdown_of(out, "ptb")
    assert "`test ppl|data:test" in text and first.stdout.endswith(text)
    written = times(out)
    (run,) = out.glob("*/epochs-1/sup-seed-2")
    for path in (*run.parent.glob("table*"), *run.glob("*score*"), run / "trained"):
        path.unlink()
    more = experiment(server, "ptb", out, **settings, seeds="1,2")
    assert more.stdout.endswith(text)
    assert "sup-seed-2: training\n" in more.stderr and "sup-seed-1: training" not in more.stderr
    now = times(out)
    kept = [path for path in written if path.suffix == ".pt" or "sup-seed-1" in path.parts]
    assert kept and all(now[path] == written[path] for path in kept)


def test_settings_have_folders_of_their_own(tmp_path: Path, server: Server) -> None:
    """Results of other settings stay; here nothing is run."""
    plans = [
        experiment(server, "ptb", tmp_path / "out", "--dry-run", data=tmp_path, kinds="sup", **settings)
        for settings in ({}, {"epochs": 3}, {"seeds": 2})
    ]
    runs = [set(re.findall(r"^Job \d+: (\S+): training$", plan.stdout + plan.stderr, re.MULTILINE)) for plan in plans]
    assert all(len(run) == 1 for run in runs) and len(set.union(*runs)) == 3


def test_translations_are_compared(tmp_path: Path, server: Server) -> None:
    """By sacrebleu's paired bootstrap; here of translations that are there already."""
    data, out = write_corpus(tmp_path / "data", "multi30k"), tmp_path / "out" / "pieces-60"
    text = (data / "test_2016_flickr.en").read_text()
    places = [out / "corpus" / "text" / "test.en"]
    places += [out / "epochs-1" / f"{kind}-seed-1" / "hypotheses" for kind in ("tf", "sup")]
    for place in places:
        place.parent.mkdir(parents=True)
        place.write_text(text)
    target = "pieces-60/epochs-1/paired-kinds-tf+sup-seed-1.txt"
    experiment(server, "multi30k", out.parent, target, "--allowed-rules", "compare", data=data, kinds="tf,sup")
    result = (out.parent / target).read_text()
    assert "Baseline: pieces-60/epochs-1/tf-seed-1/hypotheses" in result
    assert result.count("100.00 (100.00") == 4


def test_a_missing_file(tmp_path: Path, server: Server) -> None:
    data = write_corpus(tmp_path / "data", "ptb")
    (data / "ptb.test.txt").unlink()
    done = experiment(server, "ptb", tmp_path / "out", code=1, data=data)
    assert "fairseq-stack: error: " in done.stderr and "ptb.test.txt is not a file" in done.stderr
    assert not list((tmp_path / "out").glob("*/corpus"))


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("ptb", {"data": "relative"}, "data=relative: expected an absolute path"),
        ("ptb_stream", {"data": "/", "kinds": "sup,gru"}, "expected some of lstm,sup,rns,vrns, got 'gru'"),
        ("multi30k", {"data": "/", "epoch": "3"}, "epoch=...: expected one of data, epochs, kinds, pieces"),
        ("murty_2023", {"epochs": None, "parts": "trees"}, "data=DATA is missing"),
    ],
    ids=["relative", "kind", "name", "no-trees"],
)
def test_mistakes(tmp_path: Path, name: str, settings: dict[str, Any], message: str, server: Server) -> None:
    assert message in experiment(server, name, tmp_path / "out", code=1, **settings).stderr
    assert {path.name for path in (tmp_path / "out").iterdir()} <= {".snakemake"}


@pytest.mark.parametrize(
    ("name", "shown"),
    [("cfl_2024", "The best of 2 runs"), hostile("cfl_2020", "Mean and standard deviation of 2")],
)
def test_formal_languages(tmp_path: Path, name: str, shown: str, server: Server) -> None:
    """Restarts on tiny data are trained, scored, drawn and tabulated; to show fewer of them, none is trained again."""
    settings: dict[str, Any] = {"languages": "unmarked-reversal", "limit": 20, "kinds": "lstm", "seeds": "1,2"}
    settings |= {"rates": "0.01,0.001"} if name == "cfl_2020" else {"kinds": "lstm-nd"}
    experiment(server, name, tmp_path, **settings)
    (folder,) = tmp_path.glob("*-20??/*")
    names = {path.name for path in folder.iterdir()}
    assert names == {"test.md", "valid.md", "lengths.png", "lengths.pdf", "training.png"}
    text = (folder / "test.md").read_text(encoding="utf-8")
    assert shown in text
    assert text.count("|eos:no|" if name == "cfl_2020" else "|eos:yes|") == 1
    assert len([*tmp_path.glob("**/highest-stack.tsv")]) == (2 if name == "cfl_2024" else 0)
    of_one_seed = experiment(server, name, tmp_path, "--dry-run", **{**settings, "seeds": 1})
    plan = of_one_seed.stdout + of_one_seed.stderr
    assert "rule choose" in plan and ": training" not in plan, plan


WITHOUT_COMMANDS = [
    "table2 data=DATA",
    "table3 data=DATA",
    "table6 data=DATA",
    "ptb_stream data=DATA sizes=paper",
    "cfl_2020 languages=dyck",
    "cfl_2024 languages=dyck kinds=lstm-nd short=20 supervised=prefixes",
    "capacity_2023 symbols=200",
]
"""Workflows, and settings of them, of which the pages show no command."""


def documented_commands() -> list[str]:
    """The commands of the pages that start an experiment, without where the results go and how many run at a time: one
    for each workflow, protocol and choice of settings. The pages name some workflows without a command: one for each.
    """
    results = (f"docs/{page.name}" for page in sorted((REPOSITORY / "docs").glob("results-*.md")))
    pages = map(Document, ("docs/experiments.md", *results, "docs/transduction.md"))
    lines = (line for page in pages for block in page.blocks("bash") for line in block.replace("\\\n", "").splitlines())
    commands = [re.sub(r" +--(directory|cores) \S+", "", line) for line in lines if line.startswith("snakemake ")]
    folder = "scripts/experiments"
    for name, settings in (words.split(" ", 1) for words in WITHOUT_COMMANDS):
        commands += [f"snakemake --snakefile {folder}/{name}.smk --profile {folder}/profiles/local --config {settings}"]
    without_values = (re.sub(r"=(?!one-turn|paper)\S+", "=", command).split() for command in commands)
    distinct = {frozenset(words) - {"seeds="}: command for words, command in zip(without_values, commands, strict=True)}
    return [re.sub(r"=/path/to/\w+", "=DATA", command) for command in distinct.values()]


@pytest.mark.parametrize(
    "command", documented_commands(), ids=lambda command: re.sub(r".*/(\w+)\.smk.*?local", r"\1", command)
)
def test_documented_experiments_are_planned(tmp_path: Path, command: str, server: Server) -> None:
    """Their settings are known, and so are all options of fairseq-train."""
    command = re.sub(r"=(DATA|TREES|BLIMP|SUITES|AGREEMENT)(?= |$)", f"={tmp_path}", command)
    options = f"--directory {tmp_path}/out --cores 2 --dry-run --printshellcmds"
    command = command.replace("--profile", f"{options} --profile")
    plan = subprocess.run(
        ["bash", "-c", command], cwd=REPOSITORY, env=server.environment(), capture_output=True, text=True
    )
    assert plan.returncode == 0, plan.stdout + plan.stderr
    assert training_commands(plan)


def training_commands(plan: subprocess.CompletedProcess[str]) -> set[tuple[str, ...]]:
    """The words of each fairseq-train of a plan; some of them are parsed, of which a mistake would end this process."""
    text = plan.stdout + plan.stderr
    commands = re.findall(r"^(?:Shell command: +| +)(fairseq-train .*?)(?: > .*)?$", text, re.MULTILINE)
    for line in re.findall(r"forks\.py (.*)$", text, re.MULTILINE):
        commands += [command for _, _, command in (word.partition("=") for word in shlex.split(line))]
    trainings = {tuple(shlex.split(command)) for command in commands if command.startswith("fairseq-train ")}
    for words in sorted(trainings)[:: max(1, len(trainings) // 4)]:
        parse_train(list(words[2:]))
    return trainings


def parse_train(words: list[str]) -> None:
    """Parse the arguments of fairseq-train; a mistake ends the process."""
    from fairseq import options

    options.parse_args_and_arch(options.get_training_parser(), ["data", *words])
