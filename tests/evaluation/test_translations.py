"""Reading and scoring the translations of fairseq-generate."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import fairseq_stack
from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.translations import (
    Translation,
    bleu,
    exact_match,
    exact_match_by,
    read_translations,
)

RIGHT = Translation("der Hund schläft .", "the dog sleeps .", "the dog sleeps .")
WRONG = Translation("die Hunde schlafen .", "the dogs sleep .", "the dogs sleeps .")

GENERATED = """\
S-1\tdie Hunde schlafen .
T-1\tthe dogs sleep .
H-1\t-0.25\tthe dogs sleeps .
D-1\t-0.25\tthe dogs sleeps .
P-1\t-0.1 -0.2
H-1\t-0.75\ta worse one
S-0\tder Hund schläft .
T-0\tthe dog sleeps .
H-0\t-0.5\tthe dog sleeps .
Generate test with beam=4: BLEU4 = 50.00
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "generate-test.txt"
    path.write_text(text, encoding="utf-8")
    return path


def test_translations_are_in_the_order_of_the_data(tmp_path: Path) -> None:
    assert read_translations(write(tmp_path, GENERATED)) == [RIGHT, WRONG]


def test_an_empty_translation(tmp_path: Path) -> None:
    translations = read_translations(write(tmp_path, "S-0\ta\nT-0\tb\nH-0\t-1.0\t\n"))
    assert translations == [Translation("a", "b", "")]


@pytest.mark.parametrize(
    "text",
    ["", GENERATED.replace("H-0", "X-0"), GENERATED.replace("T-1", "X-1"), GENERATED.replace("-1\t", "-2\t")],
    ids=["empty", "no-hypothesis", "no-reference", "gap"],
)
def test_missing_lines(tmp_path: Path, text: str) -> None:
    with pytest.raises(UserError, match=r"generate-test\.txt: \d lines [STH]-"):
        read_translations(write(tmp_path, text))


def test_exact_match() -> None:
    score = exact_match([RIGHT, WRONG, RIGHT, RIGHT], "four")
    assert score.value == 0.75
    version = f"version:fairseq_stack-{fairseq_stack.__version__}"
    assert str(score) == f"exact match|data:four|sentences:4|{version} = 0.7500 of the sentences"
    assert exact_match_by([RIGHT, WRONG, RIGHT, WRONG, WRONG], [2, 2, 0, 1, 1]) == {0: 1.0, 1: 0.0, 2: 0.5}


def test_exact_match_needs_a_group_for_each_translation() -> None:
    with pytest.raises(ValueError, match="zip"):
        exact_match_by([RIGHT], [1, 2])


def test_bleu_takes_words_as_they_are() -> None:
    score = bleu([RIGHT, RIGHT], "two")
    assert score.value == pytest.approx(100)
    assert re.fullmatch(r"BLEU\|data:two\|nrefs:1\|.*\|tok:none\|.*\|version:[\d.]+ = 100\.0000", str(score))
    # 7 of 8 words, 4 of 6 bigrams, 2 of 4 trigrams, 1 of 2 fourgrams
    assert bleu([RIGHT, WRONG], "two").value == pytest.approx(100 * (7 / 8 * 4 / 6 * 2 / 4 * 1 / 2) ** 0.25)
