"""fairseq-stack prepare, for every corpus: bad input, targets, interruption, and the same bytes."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack import cli
from fairseq_stack_preprocess.text.manifest import describe_files

TREE = "(S (NP (NNP Zürich)) (VP (VBZ liegt)))\n"


@dataclass(frozen=True)
class Corpus:
    """How a small corpus is prepared.

    Attributes:
        name: of the case; its first word is that of the corpus.
        options: what follows FOLDER, given the files' folder as ``{raw}``.
        files: the input, by names.
        victim: the file that is broken: three lines that are valid UTF-8 but not ASCII.
    """

    name: str
    options: str
    files: dict[str, str] = field(default_factory=dict)
    victim: str = ""

    def arguments(self, folder: Path, raw: Path, *more: str) -> list[str]:
        """Those of the command."""
        options = self.options.format(raw=raw).split()
        return ["prepare", self.name.split()[0], str(folder), *options, "--no-binarise", *more]

    def write(self, raw: Path) -> Path:
        """Write the input into ``raw`` and return that."""
        for name, text in self.files.items():
            (raw / name).parent.mkdir(parents=True, exist_ok=True)
            (raw / name).write_bytes(text.encode())
        return raw


SIZES = "--train-size 30 --valid-size 10"
LENGTHS = "--min-length 2 --max-length 6 --test-min-length 2 --test-max-length 6 --test-per-length 2"
PAIRS = {"c.de": "Das ist ä.\nUnd\ndas auch ö.\n", "c.en": "This is ä.\nAnd\nthis is ö.\n"}

OF_FILES = [
    Corpus(
        "cfl --grammar",
        f"--grammar {{raw}}/g.txt {LENGTHS} {SIZES}",
        {"g.txt": "# Gr\u00e4mmatik\nS -> 'a' S 'ä' [0.5]\nS -> 'b'\n"},
        "g.txt",
    ),
    Corpus(
        "classification",
        "--template Gut:{{text}} --train {raw}/train.tsv --valid {raw}/valid.tsv --test {raw}/test.tsv --like {raw}",
        {
            "data-bin/dict.txt": "schön 1\n",
            **{f"{split}.tsv": "text\tlabel\nschön\t1.5\nnicht schön\t0\n" for split in ("train", "valid", "test")},
        },
        "valid.tsv",
    ),
    Corpus(
        "mt",
        "--source de --target en --train {raw}/c --valid {raw}/c --test {raw}/c --pieces 40",
        PAIRS,
        "c.en",
    ),
    Corpus(
        "ptb",
        "--raw {raw}",
        {f"{section}/wsj_{section}01.mrg": TREE * 3 for section in ("02", "23", "24")},
        "24/wsj_2401.mrg",
    ),
    Corpus(
        "lm",
        "--train {raw}/train.txt --valid {raw}/valid.txt --test {raw}/test.txt --pieces 40",
        {f"{split}.txt": f"ein wort\nän word\n{split} ö\n" for split in ("train", "valid", "test")},
        "valid.txt",
    ),
    Corpus(
        "treebank",
        "--train {raw}/train.mrg --valid {raw}/valid.mrg --test {raw}/test.mrg --pieces 40",
        {f"{split}.mrg": TREE * 3 for split in ("train", "valid", "test")},
        "valid.mrg",
    ),
]
DRAWN = [
    Corpus("cfl --task", f"--task dyck {LENGTHS} {SIZES}"),
    Corpus("cfl bounded-dyck", f"--task bounded-dyck {SIZES} --test-size 10 --distance-size 10 --depth-strings 1"),
    Corpus("nested-translation", f"{SIZES} --test-size 10"),
    Corpus("transduction --task", f"--task reversal {SIZES} --test-size 10"),
    Corpus("transformations", f"--task tense-reinflection {SIZES} --test-size 10 --gen-size 10"),
]

of_files = pytest.mark.parametrize("corpus", OF_FILES, ids=lambda corpus: corpus.name)
every = pytest.mark.parametrize("corpus", [*OF_FILES, *DRAWN], ids=lambda corpus: corpus.name)


def error_of(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line with which the command refuses; the rest of standard error is progress."""
    assert cli.main(arguments) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if line.startswith("fairseq-stack: ")] == lines[-1:]
    assert lines[-1].startswith("fairseq-stack: error: ")
    return lines[-1].removeprefix("fairseq-stack: error: ")


@of_files
def test_broken_text_is_one_error_with_file_and_line(
    corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = corpus.write(tmp_path / "raw") / corpus.victim
    path.write_bytes(path.read_bytes().replace(b"\n", b"\n\xff", 1))
    error = error_of(corpus.arguments(tmp_path / "new" / "out", tmp_path / "raw"), capsys)
    assert f"{path}, line 2: not UTF-8: invalid start byte, byte 0xff" in error
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]


# What stands in the place of a file.
KINDS: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,  # to open it would be to wait for ever
    "folder": Path.mkdir,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "dangling-link": lambda path: path.symlink_to("no"),
}


@pytest.mark.parametrize(
    ("corpus", "kind"),
    [(corpus, kind) for corpus in OF_FILES for kind in KINDS if kind == "pipe" or corpus.name == "mt"],
    ids=lambda value: value.name if isinstance(value, Corpus) else value,
)
def test_what_is_not_a_file(kind: str, corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = corpus.write(tmp_path / "raw") / corpus.victim
    path.unlink()
    KINDS[kind](path)
    # ptb reads the files that it finds.
    message = "no .mrg file of section 24 (valid)" if corpus.name == "ptb" else f"{path} is not a file"
    assert message in error_of(corpus.arguments(tmp_path / "out", tmp_path / "raw"), capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]


@of_files
def test_cr_lf_ends_a_line_as_lf_does(corpus: Corpus, tmp_path: Path) -> None:
    raw = corpus.write(tmp_path / "raw")
    assert cli.main(corpus.arguments(tmp_path / "lf", raw)) == 0
    for name in corpus.files:
        (raw / name).write_bytes((raw / name).read_bytes().replace(b"\n", b"\r\n"))
    assert cli.main(corpus.arguments(tmp_path / "cr-lf", raw)) == 0
    assert describe_files(tmp_path / "cr-lf") == describe_files(tmp_path / "lf")


@every
def test_a_corpus_and_its_replacement(corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was made is described in its manifest, and replaced with --force only."""
    out, raw = tmp_path / "new" / "out", corpus.write(tmp_path / "raw")
    assert cli.main(corpus.arguments(out, raw)) == 0
    captured = capsys.readouterr()
    assert captured.out == f"text:     {out / 'text'}\nmanifest: {out / 'manifest.json'}\n"
    assert f"{corpus.name.split()[0]}: train: " in captured.err  # progress
    check_manifest(corpus, raw, out)
    made = describe_files(out)
    error = error_of(corpus.arguments(out, raw, "--limit", "2"), capsys)
    assert error == f"{out} already exists; give --force to replace it"
    assert describe_files(out) == made
    assert cli.main(corpus.arguments(out, raw, "--limit", "2", "--force")) == 0
    (text,) = (path for path in (out / "text").iterdir() if path.name in ("train.txt", "train.en", "train.input"))
    assert text.read_bytes().count(b"\n") == 2


def test_same_bytes_in_other_surroundings(tmp_path: Path) -> None:
    """Another process with other hashes, locale, time zone, number of threads, folder, and relative paths."""
    folders = {corpus.name.replace(" ", ""): corpus for corpus in (*OF_FILES, *DRAWN)}
    for name, corpus in folders.items():
        raw = corpus.write(tmp_path / name / "raw")
        assert cli.main(corpus.arguments(tmp_path / name / "a", raw)) == 0
    surroundings = {
        "PYTHONHASHSEED": "77",
        "PYTHONPATH": os.pathsep.join(os.path.abspath(path) for path in sys.path if path),
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "LC_ALL": "C",
        "TZ": "Asia/Tokyo",
        "OMP_NUM_THREADS": "3",
    }
    program = "import json, sys; from fairseq_stack.cli import main; sys.exit(any(map(main, json.load(sys.stdin))))"
    again = json.dumps([corpus.arguments(Path(name, "b"), Path(name, "raw")) for name, corpus in folders.items()])
    subprocess.run(
        [sys.executable, "-c", program], input=again.encode(), env={**os.environ, **surroundings}, cwd=tmp_path,
        check=True, capture_output=True,
    )  # fmt: skip
    for name in folders:
        first, second = tmp_path / name / "a", tmp_path / name / "b"
        assert describe_files(first) == describe_files(second), name
        assert (first / "manifest.json").read_bytes() == (second / "manifest.json").read_bytes(), name


def check_manifest(corpus: Corpus, raw: Path, out: Path) -> None:
    text = (out / "manifest.json").read_text(encoding="utf-8")
    manifest: dict[str, Any] = json.loads(text)
    assert manifest["corpus"] == corpus.name.split()[0]
    assert {"fairseq_stack", "python"} <= manifest["versions"].keys()
    further = ["gen"] if corpus.name == "transformations" else []
    assert list(manifest["splits"]) == list(manifest["dropped"]) == ["train", "valid", "test", *further]
    read = ("classification", "lm", "ptb", "treebank")
    assert ("seed" in manifest["options"]) == (corpus.name not in read)
    assert manifest["outputs"] == describe_files(out)
    hashes = {hashlib.sha256((raw / name).read_bytes()).hexdigest() for name in corpus.files}
    assert set(manifest["inputs"].values()) == hashes
    assert str(out.parent) not in text
