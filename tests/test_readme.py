"""Every command and snippet of the README runs as it stands, on tiny data and for one epoch."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.commands.running import Server
from tests.documents import Document, run_block

README = Document("README.md")
# In tiny mode a command differs from the README's in these numbers only.
TINY = (
    (re.compile(r"--max-epoch \d+"), "--max-epoch 1"),
    (re.compile(r"--num-epoch-checkpoints \d+"), "--num-epoch-checkpoints 1"),
    (re.compile(r"(prepare (?:nested-translation|reversal) \S+)"), r"\1 --train-size 40 --valid-size 9 --test-size 9"),
    (re.compile(r"--limit \d+"), "--limit 50"),
    (re.compile(r"(evaluate-cfl \S+)"), r"\1 --samples 5 --bootstrap 10"),
)
SENTENCES = ["der Hund schläft .", "die Katze , die der Hund sieht , schläft .", "die Kinder lesen .", "<unk> liest ."]


def commands() -> list[str]:
    """The README's blocks of shell commands, except the commands of its scripts, which have tests of their own."""
    return [block for block in README.blocks("bash") if "scripts/" not in block]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the text files that the README speaks of."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "text").mkdir()
    for split, times in (("train", 10), ("valid", 2), ("test", 1)):
        for language in ("de", "en", "txt"):
            text = "".join(f"{sentence}\n" for sentence in SENTENCES * times)
            (folder / "text" / f"{split}.{language}").write_text(text, encoding="utf-8")
        (folder / "text" / f"{split}.mrg").write_text("(S (NP (D the) (N dog)) (VP (V sleeps)))\n" * times)
    return folder


def test_the_commands_and_snippets_run(folder: Path, server: Server) -> None:
    """One test, since they build on each other, and the snippets on the models that they train."""
    outputs = [run_block(block, folder, server, TINY) for block in commands()]
    generated = outputs[0]
    assert sum(line.startswith("H-") for line in generated.splitlines()) == len(SENTENCES)
    assert sum(line.startswith("H-") for line in outputs[1].splitlines()) == len(SENTENCES)
    assert re.search(r"Perplexity: \d+\.\d+", outputs[2])
    assert "valid on 'test' subset" in outputs[3]
    assert (folder / "checkpoints" / "mt" / "average.pt").exists()
    assert sum(line.startswith("H-") for line in outputs[3].splitlines()) == len(SENTENCES)
    assert (folder / "checkpoints" / "mixed" / "checkpoint_best.pt").exists()
    assert (folder / "checkpoints" / "hydra" / "checkpoint_best.pt").exists()
    (parser,) = [output for block, output in zip(commands(), outputs, strict=True) if "prepare treebank" in block]
    assert re.search(r"Perplexity: \d+\.\d+", parser)
    assert (folder / "data" / "nested" / "manifest.json").exists()
    assert (folder / "data" / "reversal" / "manifest.json").exists()
    assert (folder / "weights.png").exists()
    for snippet in README.blocks("python"):
        ending = server.run_program(snippet, folder)
        assert ending.code == 0, f"{snippet}\n{ending.errors}"
