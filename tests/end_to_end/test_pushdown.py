"""fairseq's commands train, score and use a syntactic language model on the trees of fairseq-stack prepare treebank."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack.errors import UserError
from fairseq_stack.hub.interface import load
from tests.end_to_end.fairseq_commands import GENERATION, LANGUAGE_MODEL, PUSHDOWN, TRAINING, Output, run

SCORING = ["--batch-size", 4, "--num-workers", 0, "--cpu"]


def last(output: Output, name: str) -> float:
    """The last value of this name in the log of a validation."""
    said = "\n".join([*output.log, output.printed])
    return float(re.findall(rf"valid on 'valid' subset.* {name} (\S+)", said)[-1])


def test_training(treebank: Path, pushdown_training: tuple[Path, Output]) -> None:
    path, output = pushdown_training
    assert output.training_losses()[1] < output.training_losses()[0]
    assert last(output, "nll_loss") + last(output, "attach_loss") == pytest.approx(last(output, "loss"), abs=0.002)
    assert 0 < last(output, "attach_accuracy") <= 1
    assert (path.parent / "dict.txt").is_file()
    again = run("validate", treebank, *PUSHDOWN[:2], "--path", path, *SCORING)
    for name in ("loss", "nll_loss", "attach_loss", "attach_accuracy"):
        assert last(again, name) == pytest.approx(last(output, name), abs=0.0011)


def test_scores_of_words_with_gold_tapes(treebank: Path, pushdown_training: tuple[Path, Output]) -> None:
    path, output = pushdown_training
    scored = run("eval-lm", treebank, *PUSHDOWN[:2], "--path", path, "--gen-subset", "valid", *SCORING)
    assert scored.validation_losses() == [pytest.approx(last(output, "nll_loss"), abs=0.0011)]
    score = next(line for line in scored.log if line.startswith("Loss (base 2)"))
    assert score.endswith("; each word given gold parses (fairseq-stack evaluate-pushdown needs none)")


def test_strings_without_parses(treebank: Path, pushdown_training: tuple[Path, Output]) -> None:
    """The model goes on with a string, and decides itself what words attach to."""
    options = [*PUSHDOWN[:2], "--path", pushdown_training[0], *GENERATION, "--batch-size", 1]
    outputs = run("interactive", treebank, *options, stdin="a b\nc\n").hypotheses()
    assert outputs[0].startswith("a b") and outputs[1].startswith("c")


@pytest.mark.parametrize("beam", [2, 3, 5])
def test_several_prompts_with_a_beam(pushdown_model: Path, beam: int) -> None:
    """Until its prompt ends, a beam also holds hypotheses of probability 0, which may contain many ends."""
    hub, prompts = load(pushdown_model), ["a b c a b", "c", "a b c", "b a"]
    options = {"beam": beam, "max_len_b": 8}
    assert hub.sample(prompts, **options) == [hub.sample(prompt, **options) for prompt in prompts]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ([*PUSHDOWN, "--task", "language_modeling"], "learns from parses: expected --task pushdown_language_"),
        ([*PUSHDOWN, "--decoder-attention-heads", 3], "expected a multiple of --decoder-attention-heads 3, got 16"),
        ([*PUSHDOWN, "--pushdown-depths", 0], "--pushdown-depths: expected at least 1, got 0"),
        ([*PUSHDOWN, "--pushdown-parametrization", "equations", "--attachment-size", 4], "--attachment-size and "),
        ([*LANGUAGE_MODEL, "--stack-layers", "sdpa,pushdown"], "it needs --arch pushdown_transformer_lm"),
    ],
    ids=["task", "heads", "depths", "head", "model"],
)
def test_errors(treebank: Path, tmp_path: Path, options: list[Any], problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        run("train", treebank, *options, *TRAINING, "--save-dir", tmp_path)
