"""The commands of docs/data.md, docs/evaluation.md and the help can be given as they stand."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from fairseq_stack import cli
from fairseq_stack.cli.prepare import CORPORA
from tests.documents import Document

DOCUMENT = Document("docs/data.md")
EVALUATION = Document("docs/evaluation.md")
NAMES = [corpus.__name__.rsplit(".", 1)[1].replace("_", "-") for corpus in CORPORA]
GENERATED = ("cfl", "nested-translation", "transduction", "transformations")


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
    """Parse a command, and have it write a little of a corpus that needs no input, or a grammar only."""
    cli.build_parser().parse_args(words)
    if words[0] == "prepare" and words[1] in GENERATED:
        assert cli.main([*words, "--limit", "2", "--no-binarise", "--force"]) == 0, words


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
    assert {words[0] for words in documented} == {"prepare", *evaluations}
    for words in documented:
        check(words)


@pytest.mark.parametrize("corpus", NAMES)
def test_examples_of_the_help(corpus: str, capsys: pytest.CaptureFixture[str]) -> None:
    examples = commands(help_of(corpus, capsys))
    assert examples
    for words in examples:
        assert words[:2] == ["prepare", corpus]
        check(words)
