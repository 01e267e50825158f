"""The scripts of scripts/experiments, on tiny corpora."""

from __future__ import annotations

import gzip
import random
import re
import subprocess
from pathlib import Path

import pytest

from tests.commands.running import Server

REPOSITORY = Path(__file__).resolve().parents[2]
LINES = 60
CORPORA = {
    "multi30k": [f"{split}.{language}" for split in ("train", "val", "test_2016_flickr") for language in ("de", "en")],
    "ptb": [f"ptb.{split}.txt" for split in ("train", "valid", "test")],
}


def experiment(server: Server, name: str, *arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run an experiment with the commands of a server, for one epoch unless told otherwise."""
    environment = {
        **server.environment(),
        **{"CUDA_VISIBLE_DEVICES": "", "THREADS": "1", "EPOCHS": "1", "SEED": "1", "PIECES": "60"},
        **variables,
    }
    command = ["bash", str(REPOSITORY / "scripts" / "experiments" / f"{name}.sh"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)


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
    ("name", "kind", "table", "others"),
    [
        (
            "multi30k",
            "nd",
            r"model {7}BLEU {4}chrF\nnd {6}( +\d+\.\d\d){2}\nBLEU\|nrefs:1\|.*\nchrF2\|nrefs:1\|.*\n",
            {"EPOCHS": "2", "SEED": "2", "PIECES": "61"},
        ),
        ("ptb", "sup", r"model {8}valid {6}test\nsup {5}( +\d+\.\d\d){2}\n", {"EPOCHS": "2", "SEED": "2"}),
    ],
    ids=["multi30k", "ptb"],
)
def test_runs_once_with_the_same_settings_only(
    tmp_path: Path, name: str, kind: str, table: str, others: dict[str, str], server: Server
) -> None:
    data, out = write_corpus(tmp_path / "my data", name), tmp_path / "my out"
    first = experiment(server, name, data, out, kind)
    assert first.returncode == 0, first.stdout + first.stderr
    found = re.search(rf"^{table}\Z", first.stdout, re.MULTILINE)
    assert found, first.stdout
    assert f"training {kind}" in first.stdout
    written = times(out)

    again = experiment(server, name, data, out, kind)
    assert (again.returncode, again.stdout) == (0, found[0]), again.stderr

    for variable, value in others.items():
        other = experiment(server, name, data, out, kind, **{variable: value})
        settings = out / ("corpus" if variable == "PIECES" else kind) / "settings"
        assert (other.returncode, other.stdout) == (1, ""), variable
        assert f"{settings} has other settings" in other.stderr
        there, now = re.findall(r"^  (?:there|now): +(.*)$", other.stderr, re.MULTILINE)
        assert there == settings.read_text(encoding="utf-8").removesuffix("\n")
        assert [word for word in now.split() if word not in there.split()] in ([value], [f"{variable}={value}"])
    assert times(out) == written


@pytest.mark.parametrize("name", CORPORA)
def test_a_folder_without_settings_is_taken_over(tmp_path: Path, name: str, server: Server) -> None:
    """Those of earlier versions have none; this one is complete but for its scores."""
    (tmp_path / "corpus").mkdir()
    (tmp_path / "sup").mkdir()
    for file in ("train.log", "trained"):
        (tmp_path / "sup" / file).touch()
    done = experiment(server, name, tmp_path, tmp_path, "sup")
    assert done.returncode == 1 and ": training" not in done.stdout
    settings = (tmp_path / "sup" / "settings").read_text(encoding="utf-8")
    assert settings.split()[0] == "--task" and "--max-epoch 1 --seed 1" in settings


@pytest.mark.parametrize(("name", "option"), [("multi30k", "test"), ("ptb", "raw")])
def test_a_missing_file(tmp_path: Path, name: str, option: str, server: Server) -> None:
    data = write_corpus(tmp_path / "data", name)
    missing = CORPORA[name][-1]
    (data / missing).unlink()
    done = experiment(server, name, data, tmp_path / "out")
    assert done.returncode == 2
    assert f"fairseq-stack: error: --{option}" in done.stderr and missing in done.stderr
    assert not (tmp_path / "out" / "corpus").exists()


@pytest.mark.parametrize("name", CORPORA)
def test_an_unknown_kind(tmp_path: Path, name: str, server: Server) -> None:
    done = experiment(server, name, tmp_path, tmp_path / "out", "nd", "lstm")
    assert done.returncode == 2
    assert "expected tf, sup or nd, got 'lstm'" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", CORPORA)
def test_without_arguments_it_explains_itself(name: str, server: Server) -> None:
    done = experiment(server, name)
    assert done.returncode == 2
    assert f"{name}.sh DATA OUT" in done.stderr and "EPOCHS" in done.stderr
