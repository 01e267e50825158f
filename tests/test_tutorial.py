"""Every command and snippet of docs/tutorial.md runs as it stands, on less data and for fewer epochs."""

from __future__ import annotations

import re
from pathlib import Path

import torch

from tests.commands.running import Server
from tests.documents import Document, run_block

DOCUMENT = Document("docs/tutorial.md")
TEST_SIZE = 10
# In tiny mode a command differs from the tutorial's in these numbers only.
TINY = (
    (re.compile(r"--train-size \d+ --valid-size \d+"), "--train-size 200 --valid-size 10"),
    (re.compile(r"--test-size \d+"), f"--test-size {TEST_SIZE}"),
    (re.compile(r"--max-epoch [24]\b"), "--max-epoch 1"),
    (re.compile(r"--max-epoch 6\b"), "--max-epoch 2"),
)
COMMANDS = DOCUMENT.blocks("bash")


def commands(name: str) -> list[int]:
    """The positions of the blocks with this command."""
    return [number for number, block in enumerate(COMMANDS) if name in block]


def test_the_commands_and_snippets_run(tmp_path: Path, server: Server) -> None:
    """One test, since they build on each other."""
    printed = [run_block(block, tmp_path, server, TINY) for block in COMMANDS]
    check_that_the_corpus_is_shown(printed)
    check_that_training_goes_on(printed, tmp_path)
    check_that_the_test_set_is_translated(printed, tmp_path)
    check_that_any_text_is_translated(printed)
    check_that_a_language_model_is_scored(printed)
    check_that_the_pictures_are_drawn(tmp_path)
    check_that_the_snippets_run(tmp_path, server)


def check_that_the_corpus_is_shown(printed: list[str]) -> None:
    (number,) = commands("fairseq-stack show")
    assert f"test: pairs_read {TEST_SIZE}" in printed[number]


def check_that_training_goes_on(printed: list[str], folder: Path) -> None:
    first, second = commands("train-mt.sh --max-epoch")
    assert "begin training epoch 1" in printed[first]
    assert "begin training epoch 2" in printed[second] and "begin training epoch 1" not in printed[second]
    files = {path.name for path in (folder / "checkpoints" / "mt").glob("*.pt")}
    assert files == {"checkpoint_best.pt", "checkpoint_last.pt"}
    state = torch.load(folder / "checkpoints" / "mt" / "checkpoint_last.pt", weights_only=False)
    assert state["extra_state"]["train_iterator"]["epoch"] == 3  # the next


def check_that_the_test_set_is_translated(printed: list[str], folder: Path) -> None:
    (number,) = commands("sacrebleu")
    assert '"name": "BLEU"' in printed[number] and '"name": "chrF2"' in printed[number]
    hypotheses = (folder / "out" / "hypotheses.en").read_text(encoding="utf-8").splitlines()
    assert len(hypotheses) == TEST_SIZE


def check_that_any_text_is_translated(printed: list[str]) -> None:
    (number,) = commands("fairseq-interactive")
    (source,) = re.findall(r"^S-0\t(.*)$", printed[number], re.MULTILINE)
    assert "\N{LOWER ONE EIGHTH BLOCK}die" in source and "<unk>" not in source
    assert re.search(r"^D-0\t", printed[number], re.MULTILINE)


def check_that_a_language_model_is_scored(printed: list[str]) -> None:
    (number,) = commands("fairseq-eval-lm")
    assert re.search(r"Perplexity: \d+\.\d+", printed[number])


def check_that_the_pictures_are_drawn(folder: Path) -> None:
    assert len(commands("fairseq-stack inspect")) == 2
    assert {path.name for path in folder.glob("*.png")} == {"weights.png", "lm.png"}


def check_that_the_snippets_run(folder: Path, server: Server) -> None:
    ending = server.run_program("\n".join(DOCUMENT.blocks("python")), folder)
    assert ending.code == 0, ending.errors
    assert "tensor([" in ending.printed
    assert len(re.findall(r"^tensor\(-\d+\.\d+\) the women", ending.printed, re.MULTILINE)) == 2
