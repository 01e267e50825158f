"""fairseq's commands train, score and use a syntactic language model on the trees of fairseq-stack prepare treebank."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack import cli
from fairseq_stack.errors import UserError
from tests.end_to_end.running import GENERATION, LANGUAGE_MODEL, TRAINING, Output, run

TASK = ["--task", "pushdown_language_modeling", "--tokens-per-sample", 50]
MODEL = [
    *(*TASK, "--arch", "pushdown_transformer_lm", "--stack-layers", "pushdown,sup-4,sdpa", "--compact-vocab"),
    *("--decoder-embed-dim", 16, "--decoder-ffn-embed-dim", 16, "--decoder-attention-heads", 2),
    *("--criterion", "pushdown_cross_entropy"),
]
SCORING = ["--batch-size", 4, "--num-workers", 0, "--cpu"]


def random_tree(rng: random.Random, depth: int = 0) -> str:
    if depth > 1 or rng.random() < 0.3:
        return f"(W {rng.choice('abcd')})"
    return f"(P {random_tree(rng, depth + 1)} {random_tree(rng, depth + 1)})"


@pytest.fixture(scope="module")
def treebank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of a corpus of small trees, with their attachments beside them."""
    folder, rng = tmp_path_factory.mktemp("treebank"), random.Random(0)
    options: list[str] = []
    for split, size in {"train": 60, "valid": 11, "test": 5}.items():
        path = folder / f"{split}.trees"
        path.write_text("".join(f"(S {random_tree(rng)})\n" for _ in range(size)), encoding="utf-8")
        options += [f"--{split}", str(path)]
    assert cli.main(["prepare", "treebank", str(folder / "corpus"), *options, "--rare-words", "keep"]) == 0
    return folder / "corpus" / "data-bin"


@pytest.fixture(scope="module")
def trained(treebank: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Output]]:
    """A checkpoint, and what training has said."""
    folder = tmp_path_factory.mktemp("pushdown")
    output = run("train", treebank, *MODEL, *TRAINING, "--save-dir", folder)
    yield folder / "checkpoint_last.pt", output


def last(output: Output, name: str) -> float:
    """The last value of this name in the log of a validation."""
    said = "\n".join([*output.log, output.printed])
    return float(re.findall(rf"valid on 'valid' subset.* {name} (\S+)", said)[-1])


def test_training(treebank: Path, trained: tuple[Path, Output]) -> None:
    path, output = trained
    assert output.training_losses()[1] < output.training_losses()[0]
    assert last(output, "nll_loss") + last(output, "attach_loss") == pytest.approx(last(output, "loss"), abs=0.002)
    assert 0 < last(output, "attach_accuracy") <= 1
    assert (path.parent / "dict.txt").is_file()
    again = run("validate", treebank, *TASK[:2], "--path", path, *SCORING)
    for name in ("loss", "nll_loss", "attach_loss", "attach_accuracy"):
        assert last(again, name) == pytest.approx(last(output, name), abs=0.0011)


def test_scores_of_words_with_gold_tapes(treebank: Path, trained: tuple[Path, Output]) -> None:
    path, output = trained
    scored = run("eval-lm", treebank, *TASK[:2], "--path", path, "--gen-subset", "valid", *SCORING)
    assert scored.validation_losses() == [pytest.approx(last(output, "nll_loss"), abs=0.0011)]


def test_strings_without_parses(treebank: Path, trained: tuple[Path, Output]) -> None:
    """The model goes on with a string, and decides itself what words attach to."""
    options = [*TASK[:2], "--path", trained[0], *GENERATION, "--batch-size", 1]
    found = run("interactive", treebank, *options, stdin="a b\nc\n").hypotheses()
    assert found[0].startswith("a b") and found[1].startswith("c")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ([*MODEL, "--task", "language_modeling"], "learns from parses: expected --task pushdown_language_"),
        ([*MODEL, "--stack-layers", "pushdow"], "--stack-layers: layer list 'pushdow': expected 'sdpa', 'pushdown', "),
        ([*MODEL, "--decoder-attention-heads", 3], "expected a multiple of --decoder-attention-heads 3, got 16"),
        ([*MODEL, "--pushdown-depths", 0], "--pushdown-depths: expected at least 1, got 0"),
        ([*MODEL, "--dropout", 1], "--dropout: expected a probability below 1, got 1.0"),
        ([*MODEL, "--pushdown-parametrization", "equations", "--attachment-size", 4], "--attachment-size and "),
        (
            [*LANGUAGE_MODEL, "--stack-layers", "sdpa,pushdown"],
            "--stack-layers: pushdown is scaled dot-product attention with a stack tape, which stack_transformer_lm "
            "cannot have: it needs --arch pushdown_transformer_lm",
        ),
    ],
    ids=["task", "layers", "heads", "depths", "dropout", "head", "model"],
)  # fmt: skip
def test_errors(treebank: Path, tmp_path: Path, options: list[Any], problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        run("train", treebank, *options, *TRAINING, "--save-dir", tmp_path)
