"""fairseq-stack prepare: what each command line asks of its corpus, and the mistakes that only a command can hold."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fairseq_stack import cli
from fairseq_stack_preprocess.cfl import bounded_dyck
from fairseq_stack_preprocess.cfl import language_corpus as cfl
from fairseq_stack_preprocess.cfl.languages import LANGUAGES
from fairseq_stack_preprocess.classification import classification_corpus as classification
from fairseq_stack_preprocess.classification.tasks import TASKS as PROMPTS
from fairseq_stack_preprocess.lm import text_corpus as lm
from fairseq_stack_preprocess.mt import translation_corpus as mt
from fairseq_stack_preprocess.nested import nested_corpus as nested
from fairseq_stack_preprocess.transduction import task_corpus as transduction
from fairseq_stack_preprocess.transduction.tasks import TASKS
from fairseq_stack_preprocess.transformations import transformation_corpus as transformations
from fairseq_stack_preprocess.transformations.tasks import TASKS as RULES
from fairseq_stack_preprocess.trees import ptb, treebank
from tests.preprocess.corpus_folders import manifest_of

P = Path("x")
FILES = "--train x --valid x --test x"
MT = f"mt out --source de --target en {FILES}"
TREES = "treebank out --train x y --valid x --test x"
HARDEST = {name: 1.5 + number for number, name in enumerate(LANGUAGES["hardest-cfl"].defaults)}
HARDEST["semicolon_probability"] = 0.5
FLAGS_OF_HARDEST = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in HARDEST.items())

EXAMPLES = "classification out --train x --valid y --like z"
PATHS = (P, Path("y"), Path("z"))

DEFAULTS: list[tuple[str, ModuleType, Any]] = [
    *((f"cfl out --task {task}", cfl, cfl.Options(task=task)) for task in LANGUAGES),
    (f"cfl out --task hardest-cfl {FLAGS_OF_HARDEST}", cfl, cfl.Options(task="hardest-cfl", parameters=HARDEST)),
    ("cfl out --grammar x", cfl, cfl.Options(grammar=P)),
    ("cfl out --task bounded-dyck", bounded_dyck, bounded_dyck.Options()),
    *((f"{EXAMPLES} --task {task}", classification, classification.Options(*PATHS, task=task)) for task in PROMPTS),
    (f"{EXAMPLES} --template {{a}}", classification, classification.Options(*PATHS, template="{a}")),
    ("nested-translation out", nested, nested.Options()),
    (MT, mt, mt.Options("de", "en", (P,), P, P)),
    ("ptb out --raw x", ptb, ptb.Options(P)),
    (f"lm out {FILES}", lm, lm.Options(P, P, P)),
    (TREES, treebank, treebank.Options((P, Path("y")), (P,), (P,))),
    *((f"transduction out --task {task}", transduction, transduction.Options(task)) for task in TASKS),
    *((f"transformations out --task {task}", transformations, transformations.Options(task)) for task in RULES),
]

MANY = "--train-size 40 --valid-size 10 --test-size 11 --seed 7"
BASES = {command: (module, options) for command, module, options in DEFAULTS}
# The command of each corpus and flags that set all its options; and what --limit sets.
EVERY: list[tuple[str, str, dict[str, Any]]] = [
    (
        f"cfl out --task hardest-cfl {FLAGS_OF_HARDEST}",
        "--min-length 10 --max-length 12 --test-min-length 9 --test-max-length 14 --train-size 30 "
        "--valid-size 10 --test-per-length 2 --batch-size 5 --seed 3 --test-seed 4",
        {},
    ),
    ("cfl out --task dyck", "--attachments --limit 1", {"train_size": 1, "valid_size": 1, "test_per_length": 1}),
    ("cfl out --grammar x", "--limit 1", {"train_size": 1, "valid_size": 1, "test_per_length": 1}),
    (
        "cfl out --task bounded-dyck",
        "--bracket-types 3 --max-depth 4 --min-length 2 --max-length 30 --valid-size 6 "
        "--train-size 50 --test-size 70 --distance-size 8 --distance-max-depth 9 --distance-max-length 100 "
        "--depth-from 5 --depth-to 6 --depth-strings 7 --seed 1 --test-seed 2 --limit 7",
        {"valid_size": 6, **dict.fromkeys(("train_size", "test_size", "distance_size", "depth_strings"), 7)},
    ),
    (
        f"{EXAMPLES} --task rte",
        "--test x --labels a=b c=d --label-column e --penn --limit 2",
        {"test": P, "labels": ("a=b", "c=d"), "limit": 2},
    ),
    (f"{EXAMPLES} --template {{a}}", "--template b{c}", {}),
    ("nested-translation out", f"{MANY} --depth 2 --test-depth 4", {}),
    (
        MT,
        "--sample 9 --seed 4 --max-ratio 3.0 --max-chars 99 --pieces 60 --piece-threshold 2 --limit 5 "
        "--drop-lone-periods --filter-all --no-joint --hard-limit --moses --normalization nfc "
        "--piece-normalization nmt_nfkc --keep-separators",
        {},
    ),
    (MT, "--like x", {}),
    ("ptb out --raw x", "--slips --limit 3", {}),
    (f"lm out {FILES}", "--stream --limit 3", {}),
    (f"lm out {FILES}", "--pieces 9", {}),
    (TREES, "--rare-words keep --limit 2", {}),
    (TREES, "--pieces 9", {}),
    (TREES, "--gpt2 x", {}),
    (
        "transduction out --task reverse_deletion",
        f"--test-set drawn --symbols 3 --min-length 4 --max-length 9 --mean-length 5.5 --std-length 1.5 {MANY} "
        "--test-min-length 5 --test-max-length 19 --test-mean-length 9.5 --test-std-length 2.5 --test-seed 4",
        {},
    ),
    (
        "transduction out --task formula",
        "--depth 5 --test-set drawn --test-depth 6 --limit 7",
        {"train_size": 7, "valid_size": 7, "test_size": 7},
    ),
    ("transformations out --task question-formation", f"{MANY} --gen-size 12 --weights grammar", {}),
    (
        "transformations out --task tense-reinflection",
        "--limit 7",
        dict.fromkeys(("train_size", "valid_size", "test_size", "gen_size"), 7),
    ),
]


def with_flags(command: str, flags: str, others: dict[str, Any]) -> Any:
    """The options, of which each flag has set the one of its name."""
    values: dict[str, Any] = {"binarise": False}
    for flag, value in re.findall(r"--(\S+)(?: ([^-\s]\S*))?", flags):
        name = flag.replace("-", "_")
        number = float(value) if re.fullmatch(r"[\d.]+", value) else Path(value) if name in ("gpt2", "like") else value
        values |= {name.removeprefix("no_"): False} if name.startswith("no_") else {name: number or True}
    if others:
        del values["limit"]
    return replace(BASES[command][1], **{**values, **others})


@pytest.mark.parametrize(
    ("command", "module", "options", "more"),
    [(*row, "") for row in DEFAULTS]
    + [
        (command, BASES[command][0], with_flags(command, flags, others), f" {flags} --no-binarise --force")
        for command, flags, others in EVERY
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_options_reach_the_corpus(
    command: str, module: ModuleType, options: Any, more: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without flags the defaults are those of the options; and every flag sets its option."""
    monkeypatch.chdir(tmp_path)
    asked = []
    monkeypatch.setattr(
        module, "prepare", lambda options, folder, **settings: asked.append((options, folder, settings))
    )
    assert cli.main(["prepare", *f"{command}{more}".split()]) == 0
    ((asked_options, folder, settings),) = asked
    assert (asked_options, folder, settings["force"]) == (options, Path("out"), more != "")


MISTAKES = {
    "cfl out": "one of the arguments --task --grammar is required",
    "cfl out --task dyck --max-depth 0": "--max-depth needs --task bounded-dyck",
    "cfl out --task bounded-dyck --batch-size 3": "--batch-size is not an option of --task bounded-dyck",
    "mt out --source de": "the following arguments are required: --target, --train, --valid, --test",
    MT: "--train: no text for x: expected x.de and x.en; ",
    f"{MT} --like x --pieces 9": "--pieces has no effect with --like",
    f"{MT} --workers 0": "--workers must be at least 1, got 0",
    "ptb out --raw nowhere": "--raw nowhere is not a folder",
    f"{TREES} --piece-model nowhere": "--train x: no such file or folder",
    "treebank out --train bad --valid bad --test bad --piece-model nowhere": "nowhere is not a file",
    "treebank out --train bad --valid bad --test bad --gpt2 nowhere": "--gpt2 nowhere: expected a folder with",
    f"{TREES} --gpt2 x --pieces 9": "argument --pieces: not allowed with argument --gpt2",
    "transduction out": "the following arguments are required: --task",
    "transformations out --task questions": "argument --task: invalid choice: 'questions' (choose from",
}


@pytest.mark.parametrize("command", MISTAKES)
def test_mistakes(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad").write_text("S -> 'a' S\nS -> T")
    code: object
    try:
        code = cli.main(["prepare", *shlex.split(command), "--no-binarise"])
    except SystemExit as caught:
        code = caught.code
    assert code == 2
    captured = capsys.readouterr()
    lines = [line for line in captured.err.splitlines() if not line.endswith(", done")]
    assert len(lines) == 1 and MISTAKES[command] in lines[0]
    assert captured.out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["bad"]


def test_manifest_names_the_values_that_were_used(tmp_path: Path) -> None:
    arguments = ["--task", "xor", "--test-set", "drawn", "--limit", "3", "--no-binarise"]
    assert cli.main(["prepare", "transduction", str(tmp_path / "out"), *arguments]) == 0
    options = manifest_of(tmp_path / "out")["options"]
    used = {name: value for name, value in options.items() if value is not None}
    lengths = {"min_length": 12, "max_length": 12, "test_min_length": 24, "test_max_length": 24}
    sizes = {"train_size": 3, "valid_size": 3, "test_size": 3}
    assert used == {
        "task": "xor",
        **lengths,
        **sizes,
        "test_set": "drawn",
        "seed": 0,
        "test_seed": 0,
        "binarise": False,
    }
