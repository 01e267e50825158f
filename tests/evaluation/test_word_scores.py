"""Reading the scores of fairseq-eval-lm, and the cross-entropy."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import fairseq_stack
from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.word_scores import SentenceScore, cross_entropy, read_word_scores

LOG_PREFIX = "2024-01-31 12:00:00 | INFO | fairseq_cli.eval_lm | "
OUTPUT = f"""\
{LOG_PREFIX}loading model(s) from checkpoint_best.pt
{LOG_PREFIX}1 0 [-0.500000]\t[ [-1.250000]\t1 [-0.000000]\t</s> [-0.250000]
0 1 [-2.000000]\t</s> [-1.000000]
{LOG_PREFIX}Evaluated 6 tokens in 0.1s (60.00 tokens/s)
{LOG_PREFIX}Loss (base 2): 1.2022, Perplexity: 2.30
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "scores.out"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("prefix", [LOG_PREFIX, "INFO:fairseq_cli.eval_lm:"])
def test_scores_are_in_the_order_of_the_data(prefix: str, tmp_path: Path) -> None:
    """An impossible word has an infinite loss."""
    text = OUTPUT.replace(LOG_PREFIX, prefix) + f"{prefix}2 a [-inf]\t</s> [-1.000000]\n"
    scores = [SentenceScore(2, 3.0), SentenceScore(4, 2.0), SentenceScore(2, math.inf)]
    assert read_word_scores(write(tmp_path, text)) == scores


@pytest.mark.parametrize("text", ["", OUTPUT.replace("\n0 ", "\n2 ")], ids=["empty", "gap"])
def test_missing_sentences(tmp_path: Path, text: str) -> None:
    with pytest.raises(UserError, match=r"scores\.out: word scores of \d sentences"):
        read_word_scores(write(tmp_path, text))


def test_cross_entropy_is_of_all_tokens() -> None:
    score = cross_entropy([SentenceScore(3, 3.0), SentenceScore(5, 7.0), SentenceScore(3, 2.0)], "strings/test")
    assert score.value == pytest.approx(12 / 11)
    version = f"version:fairseq_stack-{fairseq_stack.__version__}"
    assert score.signature == f"data:strings/test|sentences:3|tokens:11|eos:counted|{version}"
