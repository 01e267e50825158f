"""fairseq-stack prepare cfl: options, defaults, and a user's own grammar."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairseq_stack import cli
from fairseq_stack_preprocess.cfl import bounded_dyck, corpus
from fairseq_stack_preprocess.cfl.corpus import Options
from fairseq_stack_preprocess.cfl.languages import LANGUAGES

LENGTHS = ["--min-length", "10", "--max-length", "12", "--test-min-length", "9", "--test-max-length", "14"]
SMALL = [*LENGTHS, "--train-size", "30", "--valid-size", "10", "--test-per-length", "2", "--no-binarise"]


@pytest.mark.parametrize("task", LANGUAGES)
def test_every_task(task: str, tmp_path: Path) -> None:
    assert cli.main(["prepare", "cfl", str(tmp_path / "out"), "--task", task, *SMALL]) == 0
    text = tmp_path / "out" / "text"
    assert {path.name for path in text.iterdir()} == {
        *(f"{split}.{suffix}" for split in ("train", "valid", "test") for suffix in ("txt", "logp", "nll")),
        "vocabulary.txt",
    }
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names - {"grammar.txt"} == {"lower_bound.json", "manifest.json", "text"}
    assert ("grammar.txt" in names) == (LANGUAGES[task].grammar is not None)
    assert len((text / "train.txt").read_text(encoding="utf-8").splitlines()) == 30


@pytest.mark.parametrize("task", LANGUAGES)
def test_defaults_are_those_of_the_options(task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(corpus, "prepare", lambda options, folder, force: seen.append((options, force)))
    assert cli.main(["prepare", "cfl", str(tmp_path / "out"), "--task", task]) == 0
    assert seen == [(Options(task=task), False)]


def test_every_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(corpus, "prepare", lambda options, folder, force: seen.append((options, force)))
    arguments = ["--task", "hardest-cfl", *SMALL, "--batch-size", "5", "--seed", "3", "--test-seed", "4", "--force"]
    parameters = {
        "mean_commas": 1.0,
        "mean_short_filler_length": 2.0,
        "mean_long_filler_length": 3.0,
        "semicolon_probability": 0.5,
        "mean_bracket_splits": 4.0,
        "mean_nesting_depth": 5.0,
    }
    for name, value in parameters.items():
        arguments += [f"--{name.replace('_', '-')}", str(value)]
    assert cli.main(["prepare", "cfl", str(tmp_path / "out"), *arguments, "--unary-start"]) == 0
    expected = Options(
        task="hardest-cfl",
        parameters=parameters,
        unary_start=True,
        min_length=10,
        max_length=12,
        test_min_length=9,
        test_max_length=14,
        train_size=30,
        valid_size=10,
        test_per_length=2,
        batch_size=5,
        seed=3,
        test_seed=4,
        binarise=False,
    )
    assert seen == [(expected, True)]


def test_bounded_dyck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The options that it shares with other tasks have defaults of its own."""
    seen = []
    monkeypatch.setattr(bounded_dyck, "prepare", lambda options, folder, force: seen.append(options))
    start = ["prepare", "cfl", str(tmp_path / "out"), "--task", "bounded-dyck"]
    assert cli.main(start) == 0
    numbers = {
        **{"bracket_types": 3, "max_depth": 4, "min_length": 2, "max_length": 30, "train_size": 50, "valid_size": 6},
        **{"test_size": 70, "distance_size": 8, "distance_max_depth": 9, "distance_max_length": 100},
        **{"depth_from": 5, "depth_to": 6, "depth_strings": 7, "seed": 1, "test_seed": 2},
    }
    options = [word for name, value in numbers.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    assert cli.main([*start, *options, "--valid-rule", "iid", "--no-binarise"]) == 0
    assert cli.main([*start, *options, "--limit", "7"]) == 0
    assert seen[:2] == [
        bounded_dyck.Options(),
        bounded_dyck.Options(**numbers, valid_rule="iid", binarise=False),
    ]
    sizes = (seen[2].train_size, seen[2].valid_size, seen[2].test_size, seen[2].distance_size, seen[2].depth_strings)
    assert sizes == (7, 6, 7, 7, 7)


def test_limit(tmp_path: Path) -> None:
    assert cli.main(["prepare", "cfl", str(tmp_path / "out"), "--task", "dyck", *SMALL, "--limit", "1"]) == 0
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert [manifest["splits"][split]["strings"] for split in ("train", "valid", "test")] == [1, 1, 3]


def test_dry_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "g").write_text("S -> 'a' S 'b' | 'a'")
    arguments = ["prepare", "cfl", str(tmp_path / "out"), "--grammar", str(tmp_path / "g"), *SMALL, "--dry-run"]
    assert cli.main(arguments) == 0
    printed = capsys.readouterr().out
    assert "  max_length: 12\n" in printed
    assert "vocabulary: 2 symbols: a b\n" in printed
    assert "train: 30 strings, 1 possible lengths from 11 to 11\n" in printed
    assert [path.name for path in tmp_path.iterdir()] == ["g"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "one of the arguments --task --grammar is required"),
        (["--task", "dick"], "argument --task: invalid choice: 'dick'"),
        (["--task", "dyck", "--grammar", "g"], "argument --grammar: not allowed with argument --task"),
        (
            ["--task", "dyck", "--mean-commas", "2"],
            "--mean-commas is not a parameter of dyck, which has --bracket-types,",
        ),
        (["--task", "dyck", "--bracket-types", "x"], "argument --bracket-types: invalid int value: 'x'"),
        (["--task", "dyck", "--limit", "0"], "--limit must be at least 1, got 0"),
        (["--grammar", "missing"], "error: --grammar missing: No such file or directory"),
        (["--grammar", "bad"], "bad, line 2: T has no rule; a terminal is written 'T'"),
        (["--task", "dyck", "--strip-cr"], "--strip-cr needs --grammar"),
        (["--grammar", "bad", "--dry-run"], "bad, line 2: T has no rule; a terminal is written 'T'"),
        (["--task", "dyck", "--max-depth", "3"], "--max-depth needs --task bounded-dyck"),
        (["--task", "bounded-dyck", "--batch-size", "3"], "--batch-size is not an option of --task bounded-dyck"),
        (["--task", "bounded-dyck", "--mean-commas", "3"], "--mean-commas is not an option of --task bounded-dyck"),
        (["--task", "bounded-dyck", "--unary-start"], "--unary-start is not an option of --task bounded-dyck"),
    ],
    ids=[
        *("nothing", "typo", "both", "parameter", "number", "limit", "missing", "undefined", "strip-cr", "dry-run"),
        *("bounded", "not-bounded", "parameter-of-others", "flag-of-others"),
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
    Path("bad").write_text("S -> 'a' S\nS -> T")
    code: object
    try:
        code = cli.main(["prepare", "cfl", "out", "--no-binarise", *arguments])
    except SystemExit as caught:
        code = caught.code
    assert code == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert (captured.err.count("\n"), captured.out) == (1, "")
    assert [path.name for path in tmp_path.iterdir()] == ["bad"]
