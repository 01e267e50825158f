"""fairseq-stack prepare transduction: options, defaults, mistakes, and sentences from files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack import cli
from fairseq_stack_preprocess.transduction import corpus, natural
from fairseq_stack_preprocess.transduction.options import Options
from fairseq_stack_preprocess.transduction.tasks import TASKS

NATURAL = ["--task", "natural_agreement"]
FILES = [*NATURAL, "--train", "a.tsv", "--valid", "a.tsv", "--test", "a.tsv"]


@pytest.mark.parametrize("task", TASKS)
def test_defaults_are_those_of_the_options(task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(corpus, "prepare", lambda options, folder, force: seen.append((options, force)))
    assert cli.main(["prepare", "transduction", str(tmp_path / "out"), "--task", task]) == 0
    assert seen == [(Options(task), False)]


def test_every_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(corpus, "prepare", lambda options, folder, force: seen.append((options, force)))
    numbers: dict[str, Any] = {
        "symbols": 3,
        "min_length": 4,
        "max_length": 9,
        "mean_length": 5.5,
        "std_length": 1.5,
        "test_min_length": 5,
        "test_max_length": 19,
        "test_mean_length": 9.5,
        "test_std_length": 2.5,
        "train_size": 30,
        "valid_size": 20,
        "test_size": 10,
        "seed": 3,
        "test_seed": 4,
    }
    arguments = [word for name, value in numbers.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    command = ["prepare", "transduction", str(tmp_path), "--task", "reverse_deletion", "--test-set", "drawn"]
    assert cli.main([*command, *arguments, "--no-binarise", "--force"]) == 0
    assert (
        cli.main(["prepare", "transduction", str(tmp_path), "--task", "formula", "--depth", "5", "--limit", "7"]) == 0
    )
    small: dict[str, Any] = {"train_size": 7, "valid_size": 7, "test_size": 7}
    assert seen == [
        (Options("reverse_deletion", test_set="drawn", **numbers, binarise=False), True),
        (Options("formula", depth=5, **small), False),
    ]


def test_sentences_from_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.tsv").write_text("VBZ\tthe dog\nVBP\tthe big dogs\n")
    seen = []
    monkeypatch.setattr(natural, "prepare", lambda options, folder, force: seen.append(options))
    assert cli.main(["prepare", "transduction", "out", *FILES]) == 0
    more = ["--most-words", "3", "--max-length", "9", "--limit", "2", "--strip-cr", "--no-binarise"]
    assert cli.main(["prepare", "transduction", "out", *FILES, *more]) == 0
    path = Path("a.tsv")
    assert seen == [
        natural.Options(path, path, path),
        natural.Options(path, path, path, most_words=3, max_length=9, limit=2, strip_cr=True, binarise=False),
    ]


def test_dry_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["prepare", "transduction", str(tmp_path / "out"), "--task", "agreement", "--limit", "20", "--dry-run"]
    assert cli.main(arguments) == 0
    printed = capsys.readouterr().out
    assert "  depth: 16\n" in printed
    assert "  test_depth: null\n" in printed
    assert "test: 20 pairs, the authors', of at most 51 symbols\n" in printed
    assert list(tmp_path.iterdir()) == []


def test_manifest_names_the_values_that_were_used(tmp_path: Path) -> None:
    arguments = ["--task", "xor", "--test-set", "drawn", "--limit", "3", "--no-binarise"]
    assert cli.main(["prepare", "transduction", str(tmp_path / "out"), *arguments]) == 0
    options = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))["options"]
    used = {name: value for name, value in options.items() if value is not None}
    assert used == {
        "task": "xor",
        "min_length": 12,
        "max_length": 12,
        "test_min_length": 24,
        "test_max_length": 24,
        "train_size": 3,
        "valid_size": 3,
        "test_size": 3,
        "test_set": "drawn",
        "seed": 0,
        "test_seed": 0,
        "binarise": False,
    }


def test_help_has_each_default(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["prepare", "transduction", "--help"])
    printed = " ".join(capsys.readouterr().out.split())
    assert "--depth N maximum depth of a derivation (default: 6 for parenthesis, formula; 16 for agreement)" in printed
    assert "(default: 12 for parenthesis; 7 for formula; 32 for agreement)" in printed
    for task in TASKS.values():
        assert f"{task.name} {task.form}" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: --task"),
        (["--task", "revers"], "argument --task: invalid choice: 'revers'"),
        (["--task", "xor", "--depth", "3"], "--depth is not an option of xor, which has --min-length, --max-length"),
        (["--task", "xor", "--train", "x"], "--train is for natural_agreement; xor is generated"),
        (["--task", "xor", "--most-words", "9"], "--most-words is for natural_agreement; xor is generated"),
        (["--task", "xor", "--strip-cr"], "--strip-cr is for natural_agreement; xor is generated"),
        (["--task", "xor", "--limit", "0"], "--limit must be at least 1, got 0"),
        (["--task", "xor", "--test-max-length", "30"], "--test-max-length needs --test-set drawn"),
        (["--task", "formula", "--depth", "40"], "--depth 40: strings of formula have up to "),
        (["--task", "formula", "--depth", "40", "--dry-run"], "--depth 40: strings of formula have up to "),
        (NATURAL, "--task natural_agreement needs --train, a file with sentences"),
        ([*FILES, "--depth", "3"], "--depth is for generated tasks; natural_agreement is read from files"),
        ([*FILES, "--train-size", "3"], "--train-size is for generated tasks; natural_agreement is read from files"),
        (FILES, "--train a.tsv: no such file"),
        ([*FILES, "--dry-run"], "--train a.tsv: no such file"),
    ],
)
def test_mistakes(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    code: object
    try:
        code = cli.main(["prepare", "transduction", "out", "--no-binarise", *arguments])
    except SystemExit as caught:
        code = caught.code
    assert code == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert (captured.err.count("\n"), captured.out) == (1, "")
    assert list(tmp_path.iterdir()) == []
