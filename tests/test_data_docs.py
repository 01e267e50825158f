"""The commands of docs/data.md, docs/evaluation.md and the help can be given as they stand; the table of languages is
true."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from fairseq_stack import cli
from fairseq_stack.cli.prepare import CORPORA
from fairseq_stack_preprocess.cfl.language_corpus import Options, distribution_from, lengths_of
from fairseq_stack_preprocess.transduction import task_corpus as transduction
from fairseq_stack_preprocess.transduction.tasks import TASKS
from tests.documents import Document

DOCUMENT = Document("docs/data.md")
EVALUATION = Document("docs/evaluation.md")
NAMES = [corpus.__name__.rsplit(".", 1)[1].replace("_", "-") for corpus in CORPORA]
GENERATED = ("cfl", "nested-translation", "reversal", "transduction", "transformations")


def commands(text: str) -> list[list[str]]:
    """The words behind ``fairseq-stack`` of each command in a text."""
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    stripped = map(str.strip, lines)
    return [shlex.split(line, comments=True)[1:] for line in stripped if line.startswith("fairseq-stack ")]


def help_of(corpus: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit):
        cli.main(["prepare", corpus, "--help"])
    return capsys.readouterr().out


def check(words: list[str]) -> None:
    """Parse a command, and have a corpus that needs no input, or a grammar only, say what it would do."""
    cli.build_parser().parse_args(words)
    if words[0] == "prepare" and words[1] in GENERATED and "natural_agreement" not in words:
        assert cli.main([*words, "--dry-run"]) == 0, words


@pytest.fixture(autouse=True)
def grammar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The grammar of the documentation, under the name that its commands have for it, in the current folder."""
    (text,) = (block for block in DOCUMENT.blocks("") if "->" in block)
    (tmp_path / "mine.txt").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def test_commands_of_the_documentation() -> None:
    documented = [
        words for page in (DOCUMENT, EVALUATION) for block in page.blocks("bash") for words in commands(block)
    ]
    assert {words[1] for words in documented if words[0] == "prepare"} == set(NAMES)
    evaluations = {"evaluate-cfl", "evaluate-classification", "evaluate-transformations"}
    assert {words[0] for words in documented} == {"prepare", "show", *evaluations}
    for words in documented:
        check(words)


@pytest.mark.parametrize("corpus", NAMES)
def test_examples_of_the_help(corpus: str, capsys: pytest.CaptureFixture[str]) -> None:
    examples = commands(help_of(corpus, capsys))
    assert examples
    for words in examples:
        assert words[:2] == ["prepare", corpus]
        check(words)


@pytest.mark.parametrize(
    "row", re.findall(r"^\| `(\S+)` \|(.*)\|$", DOCUMENT.text, re.MULTILINE)[:12], ids=lambda row: row[0]
)
def test_table_of_languages(row: tuple[str, str]) -> None:
    options = Options(task=row[0])
    distribution = distribution_from(options)
    lengths = {split: len(lengths_of(distribution, split, options)) for split in ("train", "test")}
    *_, symbols, counts, strings = (cell.strip() for cell in re.split(r"(?<!\\)\|", row[1]))
    assert symbols == str(len(distribution.vocabulary))
    assert counts == f"{lengths['train']} / {lengths['test']}"
    assert strings == f"{lengths['test'] * options.test_per_length:,}"


TASK_ROWS = re.findall(r"^\| `(\w+)` \|(.*→.*)\|$", DOCUMENT.text, re.MULTILINE)


@pytest.mark.parametrize("row", TASK_ROWS, ids=lambda row: row[0])
def test_table_of_tasks(row: tuple[str, str]) -> None:
    options = transduction.Options(row[0])
    sources = transduction.sources(options)
    alphabet, longest = sources["train"].alphabet, [f"{sources[split].longest:,}" for split in ("train", "test")]
    authors = ", the authors'" if options.test_set == "authors" else ""
    _, symbols, scored, lengths, pairs = (cell.strip() for cell in row[1].split("|"))
    assert (symbols, scored) == (str(len(alphabet.symbols)), f"`{' '.join(alphabet.scored)}`")
    assert lengths == " / ".join(longest)
    assert pairs == f"{options.test_size:,}{authors}"


def test_tables_name_all_tasks() -> None:
    assert set(TASKS) <= set(re.findall(r"^\| `(\w+)` \|", DOCUMENT.text, re.MULTILINE))


def test_example_of_a_task(tmp_path: Path) -> None:
    (text,) = DOCUMENT.blocks("json")
    corpus = ["prepare", "transduction", "out", "--task", "parenthesis", "--limit", "1", "--no-binarise"]
    assert cli.main(corpus) == 0
    assert json.loads((tmp_path / "out" / "task.json").read_text(encoding="utf-8")) == json.loads(text)
