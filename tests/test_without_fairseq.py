"""What works where only torch and numpy are installed, and what the commands say that need more."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fairseq_stack import cli
from tests.commands.without import run_without
from tests.conftest import REPOSITORY
from tests.evaluation.test_blimp import line as pair
from tests.evaluation.test_syntaxgym import suite_file

MODEL = REPOSITORY / "examples" / "models" / "lstm-nd-marked-reversal"

ABSENT = (
    *("fairseq", "fairseq_cli", "hydra", "matplotlib", "nltk", "omegaconf", "sacrebleu", "sentencepiece", "tqdm"),
    *("lm_eval", "safetensors", "tokenizers", "transformers"),
)
NEED_MORE = ("criterions", "harness", "hub", "huggingface", "inspection", "models", "optim", "search", "tasks")
NEEDS_TRITON = re.compile(r"/(_triton/|_?gpu|_bands|_log_partition|_panel)").search

IN_ONE_LINE = """
import contextlib, io, json
from fairseq_stack import cli

results = {}
for command in json.loads(sys.argv[1]):
    with contextlib.redirect_stderr(io.StringIO()) as said:
        results[command] = cli.main(command.split()), said.getvalue()
print(json.dumps(results))
"""


def modules_without_fairseq() -> list[str]:
    paths = [path.relative_to(REPOSITORY) for path in (REPOSITORY / "fairseq_stack").rglob("*.py")]
    paths += [path.relative_to(REPOSITORY / "preprocess") for path in (REPOSITORY / "preprocess").rglob("*.py")]
    return [
        ".".join(path.with_suffix("").parts).removesuffix(".__init__")
        for path in paths
        if path.parts[1] not in NEED_MORE and not NEEDS_TRITON(path.as_posix()) and path.name != "__main__.py"
    ]


def test_modules_that_can_be_imported() -> None:
    program = "import importlib\nfor name in sys.argv[1:]: print(importlib.import_module(name).__name__)"
    names = modules_without_fairseq()
    assert run_without(ABSENT, program, *names).split() == names


def test_names_of_the_package() -> None:
    program = """
from fairseq_stack import *
import fairseq_stack
import fairseq_stack.inspection.pictures
layer = NondeterministicStackAttention(8, 2, 3, 5)
model = StackTransformerLM(TransformerOptions(stack_layers="sup-4", decoder_embed_dim=8, decoder_ffn_embed_dim=8), 9)
print(*(name for name in fairseq_stack.__all__ if name not in globals()), hasattr(fairseq_stack, "StackTransformerLn"))
"""
    assert run_without(ABSENT, program) == "False\n"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus") / "dyck"
    assert cli.main(["prepare", "cfl", str(folder), "--task", "dyck", "--limit", "2"]) == 0
    return folder


def test_commands_that_need_fairseq_say_so_in_one_line(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "sentences").write_text("0 1 # 1 0\n")
    sizes = ("--train-size", "2", "--valid-size", "2", "--test-size", "2", "--gen-size", "2", "--no-binarise")
    pairs = ("transformations", f"{tmp_path}/pairs", "--task", "question-formation")
    assert cli.main(["prepare", *pairs, *sizes]) == 0
    (tmp_path / "pairs.jsonl").write_text(pair("0"))
    suite_file(tmp_path / "suite.json")
    (tmp_path / "prompts" / "text").mkdir(parents=True)
    (tmp_path / "prompts" / "text" / "test.txt").write_text("good Yes\n")
    (tmp_path / "prompts" / "text" / "test.label").write_text("Yes\n")
    (tmp_path / "prompts" / "task.json").write_text('{"task": "any", "labels": {"No": ["No"], "Yes": ["Yes"]}}')
    given = set(tmp_path.iterdir())
    commands = [
        f"average {MODEL} --output {tmp_path}/average.pt",
        f"doctor --user-dir {tmp_path}",
        f"evaluate-blimp {MODEL} --blimp {tmp_path}",
        f"evaluate-cfl {MODEL} --data {corpus}",
        f"evaluate-classification {MODEL} --data {tmp_path}/prompts",
        f"evaluate-pushdown {MODEL} --data {corpus}",
        f"evaluate-syntaxgym {MODEL} --suites {tmp_path}",
        f"evaluate-transduction {MODEL} --data {corpus}",
        f"evaluate-transformations {MODEL} --data {tmp_path}/pairs",
        f"inspect {MODEL} --text 0 --output {tmp_path}/weights.json",
        f"parse-prompts {MODEL} --data {tmp_path}/prompts",
        f"surprisal {MODEL} {tmp_path}/sentences",
    ]
    results = json.loads(run_without(ABSENT, IN_ONE_LINE, json.dumps(commands)))
    for command, (code, said) in results.items():
        assert code == 2, command
        assert re.match("fairseq-stack: error: .* needs? fairseq.* install it with: pip install", said), said
        assert said.count("\n") == 1
    others = {"export", "plot", "prepare", "user-dir"}
    assert {command.split()[0] for command in commands} | others == set(cli.SUBCOMMANDS)
    assert set(tmp_path.iterdir()) == given


def test_other_packages_are_named_with_the_remedy(tmp_path: Path) -> None:
    for side in ("a", "b"):
        for split in ("train", "valid", "test"):
            (tmp_path / f"{split}.{side}").write_text("a b\n" * 5)
    text = " ".join(f"--{split} {tmp_path}/{split}" for split in ("train", "valid", "test"))
    commands = {
        f"prepare mt {tmp_path}/mt --source a --target b {text} --pieces 9 --no-binarise": "pip install sentencepiece",
        f"export {MODEL} {tmp_path}/exported": "pip install 'fairseq_stack[huggingface]'",
        f"prepare cfl {tmp_path}/dyck --task dyck": "pip install --no-build-isolation 'fairseq_stack[fairseq]'",
        f"plot training {tmp_path}/train.log --output {tmp_path}/a.png": "pip install 'fairseq_stack[plots]'",
    }
    results = json.loads(run_without(ABSENT, IN_ONE_LINE, json.dumps(list(commands))))
    for command, remedy in commands.items():
        code, said = results[command]
        assert (code, remedy in said) == (2, True), said
        assert said.splitlines()[-1].startswith("fairseq-stack: error: ")


def test_commands_that_need_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "dyck"
    program = f"from fairseq_stack import cli\nsys.exit(cli.main({['doctor']}) or cli.main(sys.argv[1:]))"
    said = run_without(
        ABSENT, program, "prepare", "cfl", str(folder), "--task", "dyck", "--limit", "2", "--no-binarise"
    )
    assert "agrees with the reference" in said
    assert (folder / "text" / "train.txt").exists()


def test_each_help_is_shown() -> None:
    program = """
from fairseq_stack import cli
for name in cli.SUBCOMMANDS:
    try:
        cli.main([name, "--help"])
    except SystemExit as end:
        assert end.code == 0, name
"""
    assert run_without(ABSENT, program).count("usage: fairseq-stack") == len(cli.SUBCOMMANDS)
