"""The report of the demo: translations in the order of the data."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from fairseq_stack.errors import UserError

pytest.importorskip("matplotlib")
GENERATED = """\
S-1\tdie Hunde schlafen .
T-1\tthe dogs sleep .
H-1\t-0.25\tthe dogs sleeps .
D-1\t-0.25\tthe dogs sleeps .
H-1\t-0.75\ta worse one
S-0\tein Hund schläft .
T-0\tthe dog sleeps .
H-0\t-0.5\tthe dog sleeps .
S-2\ta
T-2\tb
H-2\t-1.0\t
"""


def test_translations(script: ModuleType, tmp_path: Path) -> None:
    """The first hypothesis of a sentence is its translation, which may be empty."""
    (tmp_path / "corpus/text").mkdir(parents=True)
    (tmp_path / "corpus/text/test.depth").write_text("1\n0\n1\n")
    (tmp_path / "tf").mkdir()
    (tmp_path / "tf/train.log").write_text(
        'num. shared model params: 10\n{"valid_loss": "1", "valid_num_updates": "5"}\n'
    )
    path = tmp_path / "tf/generate-test.txt"
    path.write_text(GENERATED, encoding="utf-8")
    references = ["the dog sleeps .", "the dogs sleep .", "b"]
    assert script.read_translations(path) == (references, ["the dog sleeps .", "the dogs sleeps .", ""])
    result = script.read_translation_model(tmp_path / "tf")
    assert (result.exact_match.value, result.exact_match_by_depth) == (1 / 3, {0: 0.0, 1: 0.5})
    path.write_text(GENERATED.replace("H-0", "X-0"), encoding="utf-8")
    with pytest.raises(UserError, match=r"generate-test\.txt: 3 references and 2 translations"):
        script.read_translation_model(tmp_path / "tf")


def test_bleu_takes_words_as_they_are(script: ModuleType) -> None:
    hypotheses, references = ["the dog sleeps .", "the dogs sleeps ."], ["the dog sleeps .", "the dogs sleep ."]
    score = script.bleu(hypotheses, references, "two")
    # 7 of 8 words, 4 of 6 bigrams, 2 of 4 trigrams, 1 of 2 fourgrams
    assert score.value == pytest.approx(100 * (7 / 8 * 4 / 6 * 2 / 4 * 1 / 2) ** 0.25)
    assert "|tok:none|" in score.signature
