"""minicons scores exported folders: the programs of the documentation, against our surprisals."""

from __future__ import annotations

import ast
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers", reason="transformers is not installed")
pytest.importorskip("minicons", reason="minicons is not installed")

from fairseq_stack.hub.surprisals import surprisals
from tests.commands.without import FAIRSEQ, run_without
from tests.documents import Document
from tests.huggingface.conftest import EXAMPLES

*_, SCORES, CORRECTION = Document("docs/huggingface.md").blocks("python")
BITS = {"surprisal": True, "base_two": True}
Scored = list[tuple[str, float]]


def ours(hub: Any, texts: list[str], *, correct: bool = False) -> Iterator[Scored]:
    """The words and the end of each text, with their surprisals in bits."""
    for words in surprisals(hub, texts, correct_word_ends=correct):
        yield [(word.text, word.surprisal / math.log(2)) for word in words]


def assert_equal(scored: list[Scored], expected: list[Scored]) -> None:
    for row, of_ours in zip(scored, expected, strict=True):
        assert [text for text, _ in row] == [text for text, _ in of_ours]
        assert [value for _, value in row] == pytest.approx([value for _, value in of_ours], abs=1e-5)


def scorer_of(model: Any) -> Any:
    from minicons.scorer import IncrementalLMScorer

    import fairseq_stack.huggingface  # noqa: F401

    return IncrementalLMScorer(str(model.folder))


def test_the_page_without_fairseq(exported: Any, tmp_path: Path) -> None:
    model = exported(EXAMPLES / "tf-sup-marked-reversal")
    (tmp_path / "exported").symlink_to(model.folder)
    tokens, words, texts = map(ast.literal_eval, run_without(FAIRSEQ, SCORES, folder=tmp_path).splitlines())
    expected = list(ours(model.hub, ["0 1 1 # 1 1 0", "0 1 # 0 1"]))
    assert_equal(tokens, [[("</s>", 0.0), *row] for row in expected])
    assert_equal(words, [row[:-1] for row in expected])
    assert texts == pytest.approx([-math.log(2) * sum(bits for _, bits in row) for row in expected], abs=1e-5)


@pytest.fixture(scope="module")
def of_pieces(piece_language_model: Path, exported: Any) -> Any:
    return exported(piece_language_model)


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Sentences of one to six words, which the model cuts into pieces."""
    rng = random.Random(2)
    return [" ".join("".join(rng.choices("abc", k=rng.randint(1, 6))) for _ in range(1 + i % 6)) for i in range(20)]


def test_corrected_words(of_pieces: Any, texts: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """They are ours, but minicons does not divide by the probability that something begins at the beginning."""
    hub = of_pieces.hub
    scope = {"scorer": scorer_of(of_pieces), "strings": texts, "bits": BITS}
    exec(CORRECTION, scope)
    scored = ast.literal_eval(capsys.readouterr().out)
    ((_, plain),), ((_, corrected),) = (next(ours(hub, [""], correct=correct)) for correct in (False, True))
    of_beginning = corrected - plain
    assert of_beginning < -0.01
    expected = [row[:-1] for row in ours(hub, texts, correct=True)]
    assert_equal(scored, [[(row[0][0], row[0][1] - of_beginning), *row[1:]] for row in expected])
