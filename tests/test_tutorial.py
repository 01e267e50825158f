"""Every command and snippet of docs/tutorial.md runs as it stands, on less data and for fewer epochs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tutorial")


@pytest.fixture(scope="module")
def printed(folder: Path, server: Server) -> list[str]:
    """What each block of commands prints. They build on each other."""
    return [run_block(block, folder, server, TINY) for block in COMMANDS]


def test_the_corpus_is_shown(printed: list[str]) -> None:
    (number,) = commands("fairseq-stack show")
    assert f"test: pairs_read {TEST_SIZE}" in printed[number]


def test_training_goes_on(printed: list[str], folder: Path) -> None:
    first, second = commands("train-mt.sh --max-epoch")
    assert "begin training epoch 1" in printed[first]
    assert "begin training epoch 2" in printed[second] and "begin training epoch 1" not in printed[second]
    files = {path.name for path in (folder / "checkpoints" / "mt").glob("*.pt")}
    assert files == {"checkpoint_best.pt", "checkpoint_last.pt"}
    state = torch.load(folder / "checkpoints" / "mt" / "checkpoint_last.pt", weights_only=False)
    assert state["extra_state"]["train_iterator"]["epoch"] == 3  # the next


def test_the_test_set_is_translated(printed: list[str], folder: Path) -> None:
    (number,) = commands("sacrebleu")
    assert '"name": "BLEU"' in printed[number] and '"name": "chrF2"' in printed[number]
    hypotheses = (folder / "out" / "hypotheses.en").read_text(encoding="utf-8").splitlines()
    assert len(hypotheses) == TEST_SIZE


def test_any_text_is_translated(printed: list[str]) -> None:
    (number,) = commands("fairseq-interactive")
    (source,) = re.findall(r"^S-0\t(.*)$", printed[number], re.MULTILINE)
    assert "\N{LOWER ONE EIGHTH BLOCK}die" in source and "<unk>" not in source
    assert re.search(r"^D-0\t", printed[number], re.MULTILINE)


def test_a_language_model_is_scored(printed: list[str]) -> None:
    (number,) = commands("fairseq-eval-lm")
    assert re.search(r"Perplexity: \d+\.\d+", printed[number])


def test_the_pictures_are_drawn(printed: list[str], folder: Path) -> None:
    assert len(commands("fairseq-stack inspect")) == 2
    assert {path.name for path in folder.glob("*.png")} == {"weights.png", "lm.png"}


def test_the_snippets_run(printed: list[str], folder: Path) -> None:
    program = "\n".join(DOCUMENT.blocks("python"))  # in one process, which imports fairseq once
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "tensor([" in done.stdout
    assert len(re.findall(r"^tensor\(-\d+\.\d+\) the women", done.stdout, re.MULTILINE)) == 2


def test_every_flag_is_explained() -> None:
    prose = re.sub(r"^```bash\n.*?^```$", "", DOCUMENT.text, flags=re.MULTILINE | re.DOTALL)
    explained = set(re.findall(r"`(-[-a-z]+)", prose))
    used = set(re.findall(r"\s(--[a-z][-a-z]+)", "\n".join(COMMANDS)))
    like_explained = {"--encoder-ffn-embed-dim", "--decoder-embed-dim", "--decoder-ffn-embed-dim"}
    of_generated_text = {"--train-size", "--valid-size", "--test-size", "--depth", "--no-binarise"}
    assert used - explained - like_explained - of_generated_text == set()


def test_the_links_lead_somewhere() -> None:
    assert DOCUMENT.broken_links() == []
