"""The workflows of scripts/experiments, on tiny corpora."""

from __future__ import annotations

import gzip
import random
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.commands.running import Server

REPOSITORY = Path(__file__).resolve().parents[2]
LINES = 60
CORPORA = {
    "multi30k": [f"{split}.{language}" for split in ("train", "val", "test_2016_flickr") for language in ("de", "en")],
    "ptb": [f"ptb.{split}.txt" for split in ("train", "valid", "test")],
    "ptb_stream": [f"ptb.{split}.txt" for split in ("train", "valid", "test")],
}
KIND = {"multi30k": "sup", "ptb": "sup", "ptb_stream": "lstm"}
KINDS = {"multi30k": "tf,sup,nd", "ptb": "tf,sup,nd", "ptb_stream": "lstm,sup,rns,vrns"}


def experiment(
    server: Server, name: str, out: Path, *options: str, **settings: object
) -> subprocess.CompletedProcess[str]:
    """Run an experiment with the commands of a server, for one epoch unless told otherwise; None sets nothing."""
    folder = REPOSITORY / "scripts" / "experiments"
    pieces = {"pieces": 60} if name == "multi30k" else {}
    all_settings = {"epochs": 1, **pieces, **settings}
    values = [f"{key}={value}" for key, value in all_settings.items() if value is not None]
    command = ["snakemake", "--snakefile", str(folder / f"{name}.smk"), "--profile", str(folder / "profiles/local")]
    return subprocess.run(
        [*command, "--directory", str(out), "--cores", "2", *options, "--config", *values],
        capture_output=True,
        text=True,
        env={**server.environment(), "CUDA_VISIBLE_DEVICES": ""},
        timeout=600,
    )


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


@pytest.mark.parametrize(
    ("name", "table", "signatures"),
    [
        ("multi30k", r"\| +\d+ s \| +\d+\.\d\d \| +\d+\.\d\d \| +\d+\.\d\d \|", ["BLEU", "chrF2"]),
        ("ptb", r"\| +\d+ s \| +\d+\.\d\d \| +\d+\.\d\d \|", ["valid ppl", "test ppl"]),
        ("ptb_stream", r"\| +\d+ s \| +\d+\.\d\d \| +\d+\.\d\d \|", ["valid ppl", "test ppl"]),
    ],
    ids=list(CORPORA),
)
def test_runs_once(tmp_path: Path, name: str, table: str, signatures: list[str], server: Server) -> None:
    """Two runs of a kind; what was complete before is kept, and an interrupted training run continues."""
    data, out, kind = write_corpus(tmp_path / "my data", name), tmp_path / "my out", KIND[name]
    first = experiment(server, name, out, data=data, kinds=kind, seeds="1,2")
    assert first.returncode == 0, first.stdout + first.stderr
    (markdown,) = out.glob("*/*epochs-1/table-kinds-*-seeds-1+2.md")
    text = markdown.read_text(encoding="utf-8")
    assert re.search(rf"^\| {kind} +\| +[\d,]+ \| +\d+ {table}\n\nThe best of 2 runs", text, re.MULTILINE), text
    assert re.findall(r"^`([^|]+)\|data:", text, re.MULTILINE) == signatures
    assert first.stdout.endswith(text)
    written = times(out)

    again = experiment(server, name, out, data=data, kinds=kind, seeds="1,2")
    assert (again.returncode, again.stdout) == (0, ""), again.stderr
    run = markdown.parent / f"{kind}-seed-2"
    for path in (markdown, *run.glob("*score*"), *run.glob("stream*"), *run.glob("generate*"), run / "trained"):
        path.unlink()
    more = experiment(server, name, out, data=data, kinds=kind, seeds="1,2")
    assert more.returncode == 0 and more.stdout.endswith(text)
    assert f"{kind}-seed-2: training\n" in more.stderr and f"{kind}-seed-1: training" not in more.stderr
    now = times(out)
    assert all(
        now[path] == time for path, time in written.items() if path.suffix == ".pt" or f"{kind}-seed-1" in path.parts
    )


@pytest.mark.parametrize("name", CORPORA)
def test_settings_have_folders_of_their_own(tmp_path: Path, name: str, server: Server) -> None:
    """Results of other settings stay; here nothing is run."""
    plans = [
        experiment(server, name, tmp_path / "out", "--dry-run", data=tmp_path, kinds=KIND[name], **settings)
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
    done = experiment(server, "multi30k", out.parent, target, "--allowed-rules", "compare", data=data, kinds="tf,sup")
    assert done.returncode == 0, done.stdout + done.stderr
    result = (out.parent / target).read_text()
    assert "Baseline: pieces-60/epochs-1/tf-seed-1/hypotheses" in result
    assert result.count("100.00 (100.00") == 4


@pytest.mark.parametrize(("name", "option"), [("multi30k", "test"), ("ptb", "raw"), ("ptb_stream", "raw")])
def test_a_missing_file(tmp_path: Path, name: str, option: str, server: Server) -> None:
    data = write_corpus(tmp_path / "data", name)
    missing = CORPORA[name][-1]
    (data / missing).unlink()
    done = experiment(server, name, tmp_path / "out", data=data)
    assert done.returncode == 1
    assert f"fairseq-stack: error: --{option}" in done.stderr and missing in done.stderr
    assert not list((tmp_path / "out").glob("*/corpus"))


@pytest.mark.parametrize("name", CORPORA)
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "data=DATA is missing"),
        ({"data": "relative"}, "data=relative: expected an absolute path"),
        ({"data": "/", "kinds": "sup,gru"}, "expected some of KINDS, got 'gru'"),
        ({"data": "/", "epoch": "3"}, "epoch=...: expected one of data, epochs, interval, kinds"),
    ],
    ids=["no-data", "relative", "kind", "name"],
)
def test_mistakes(tmp_path: Path, name: str, settings: dict[str, str], message: str, server: Server) -> None:
    done = experiment(server, name, tmp_path / "out", **settings)
    assert done.returncode == 1
    assert message.replace("KINDS", KINDS[name]) in done.stderr
    assert {path.name for path in (tmp_path / "out").iterdir()} <= {".snakemake"}


FORMAL_LANGUAGES = {
    "cfl_2024": {"kinds": "lstm", "seeds": "1,2"},
    "cfl_2020": {"kinds": "lstm", "seeds": "1,2", "rates": "0.01,0.001"},
}
FIGURES = {"choose": 1, "table_cfl": 4, "figure_by_length": 2, "figure_of_training": 1, "results": 1}


@pytest.mark.parametrize("name", ["cfl_2024", pytest.param("cfl_2020", marks=pytest.mark.hostile)])
def test_formal_languages(tmp_path: Path, name: str, server: Server) -> None:
    """Restarts on tiny data are trained, scored, drawn and tabulated, and nothing is done twice."""
    settings = {"languages": "dyck", "limit": 20, "samples": 5, **FORMAL_LANGUAGES[name]}
    done = experiment(server, name, tmp_path, **settings)
    assert done.returncode == 0, done.stdout + done.stderr
    (folder,) = tmp_path.glob("*-20??/*")
    names = {path.name for path in folder.iterdir()}
    assert names == {"test.md", "test.tex", "valid.md", "valid.tex", "lengths.png", "lengths.pdf", "training.png"}
    text = (folder / "test.md").read_text(encoding="utf-8")
    averaged = name == "cfl_2020"
    assert ("Mean and standard deviation of 2 runs" if averaged else "The best of 2 runs") in text
    assert text.count("|eos:no|" if averaged else "|eos:yes|") == 1
    again = experiment(server, name, tmp_path, **settings)
    assert again.returncode == 0 and "training" not in again.stderr, again.stderr
    of_one_seed = experiment(server, name, tmp_path, "--dry-run", **{**settings, "seeds": 1})
    plan = of_one_seed.stdout + of_one_seed.stderr
    assert "rule choose" in plan and ": training" not in plan, plan


@pytest.mark.parametrize(
    ("name", "settings", "jobs"),
    [
        ("table2", {}, {"prepare": 1, "train": 60, "score": 120, "table": 1}),
        ("table3", {}, {"prepare": 1, "train": 45, "translate": 45, "evaluate": 45, "table": 1}),
        ("table6", {}, {"prepare": 1, "train": 3, "table": 1}),
        ("ptb_stream", {}, {"prepare": 1, "train": 4, "validate": 8, "table": 1}),
        ("ptb_stream", {"sizes": "paper"}, {"prepare": 1, "train": 40, "validate": 80, "table": 1}),
        ("cfl_2024", {}, {"prepare": 5, "train": 30, "evaluate_cfl": 60, **FIGURES}),
        (
            "cfl_2024",
            {"protocol": "paper", "kinds": "tf-nd,lstm-nd"},
            {"prepare": 50, "train": 100, "evaluate_cfl": 200, **FIGURES},
        ),
        ("cfl_2020", {"languages": "dyck"}, {"prepare": 5, "train": 160, "evaluate_cfl": 320, **FIGURES}),
        (
            "capacity_2023",
            {"symbols": 200},
            {"prepare": 30, "train": 210, "evaluate_cfl": 420, **FIGURES, "figure_by_alphabet": 1},
        ),
    ],
)
def test_the_tables_of_the_paper_are_planned(
    tmp_path: Path, name: str, settings: dict[str, str], jobs: dict[str, int], server: Server
) -> None:
    """Every fairseq-train has options that it knows: the command lines are parsed, but nothing is run."""
    options = ["--dry-run", "--printshellcmds"]
    data = {} if "evaluate_cfl" in jobs else {"data": tmp_path}
    plan = experiment(server, name, tmp_path / "out", *options, epochs=7, **data, **settings)
    assert plan.returncode == 0, plan.stderr
    text = plan.stdout + plan.stderr
    assert dict(re.findall(r"^(\w+) +(\d+)$", text, re.MULTILINE)) == {
        **{rule: str(count) for rule, count in jobs.items()},
        "total": str(sum(jobs.values())),
    }
    commands = set(re.findall(r"^(?:Shell command: +| +)(fairseq-train .*)$", text, re.MULTILINE))
    assert len(commands) == jobs["train"]
    for command in sorted(commands)[:3]:
        words = shlex.split(command.partition(" > ")[0])[2:]
        assert "--max-epoch 7" in command
        parse_train(words)


def parse_train(words: list[str]) -> None:
    """Parse the arguments of fairseq-train; a mistake ends the process."""
    from fairseq import options

    options.parse_args_and_arch(options.get_training_parser(), ["data", *words])


def test_the_random_settings_are_the_same_again(tmp_path: Path, server: Server) -> None:
    options = ["--dry-run", "--printshellcmds"]
    plans = [
        experiment(server, "table2", tmp_path / "out", *options, data=tmp_path, seeds=seeds) for seeds in ("1,2", 2)
    ]
    drawn = [set(re.findall(r"--seed 2 .* --lr (\S+) ", plan.stdout + plan.stderr)) for plan in plans]
    assert drawn[0] == drawn[1] and len(drawn[0]) == 3
    assert all(1e-6 <= float(rate) <= 1e-4 for rate in drawn[0])
