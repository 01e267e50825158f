"""What fairseq's commands and models in Python print next to their results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.commands.running import Ending, Server
from tests.end_to_end.conftest import Corpora
from tests.end_to_end.fairseq_commands import GENERATION, TRAINING, TRANSLATION, USER_DIR, run

PYTHON = """
import sys
from fairseq_stack.models import StackTransformer, StackTransformerLanguageModel

translator = StackTransformer.from_pretrained(sys.argv[1], "checkpoint_last.pt")
translator.translate(["a b", "c"], max_len_b=3)
translator.score(["a b"], ["B A"])
language_model = StackTransformerLanguageModel.from_pretrained(sys.argv[2], "checkpoint_last.pt")
language_model.sample(["a"], max_len_b=3)
language_model.score(["a b"])
print("verbose", file=sys.stderr)
translator.translate(["a b"], beam=1, max_len_b=3, verbose=True)
"""


def run_apart(server: Server, command: str, *arguments: Any, stdin: str = "") -> Ending:
    """Run ``fairseq-COMMAND ARGUMENTS`` with this plugin, with the loggers that it has for a user."""
    ending = server.run([f"fairseq-{command}", *map(str, arguments), "--user-dir", USER_DIR], Path.cwd(), stdin)
    assert ending.code == 0, ending.errors
    return ending


def test_python(server: Server, translation_model: Path, language_model: Path, tmp_path: Path) -> None:
    ending = server.run_program(PYTHON, tmp_path, str(translation_model.parent), str(language_model.parent))
    assert (ending.code, ending.printed) == (0, "")
    before, _, after = ending.errors.partition("verbose\n")
    assert before == ""
    assert [line[:24] for line in after.splitlines()] == [f"INFO:fairseq.hub_utils:{kind}" for kind in "SHP"]


def test_interactive(server: Server, corpora: Corpora, translation_model: Path) -> None:
    options = ["--path", translation_model, *GENERATION, "--batch-size", 1]
    ending = run_apart(server, "interactive", corpora.translation, *options, stdin="a b\nc\n")
    assert ending.errors == ""
    assert [line.partition("\t")[0] for line in ending.printed.splitlines()] == [
        f"{kind}-{number}" for number in range(2) for kind in "SWHDP"
    ]


def test_train(corpora: Corpora, tmp_path: Path) -> None:
    options = [*TRANSLATION, *TRAINING, "--max-epoch", 1, "--share-decoder-input-output-embed", "--save-dir", tmp_path]
    log = run("train", corpora.translation, *options).log
    assert "detected shared parameter: decoder.embed_tokens.weight <- decoder.output_projection.weight" in log
    assert not any(line.startswith(("can_reuse", "reuse", "rebuild", "creating new batches")) for line in log)
