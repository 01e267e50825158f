"""BPE pieces: white space, training, counting, and the restriction to frequent pieces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hypothesis
import pytest
import sentencepiece
from fairseq.tokenizer import tokenize_line
from hypothesis import strategies

from fairseq_stack_preprocess.errors import PrepareError
from fairseq_stack_preprocess.text.sentence_pieces import (
    Encoder,
    made_blank,
    restricted,
    train_model,
)

SETTINGS: dict[str, Any] = {"pieces": 60, "hard_limit": False, "normalization": "identity"}
LINES = ["der Hund bellt laut", "die Katze schläft", "der Hund schläft", "the dog barks", "the cat sleeps"] * 4


@pytest.fixture(scope="module")
def model() -> bytes:
    return train_model(LINES, **SETTINGS)


@hypothesis.given(strategies.text(strategies.characters(codec="utf-8", exclude_characters="\n")))
def test_white_space_becomes_blank_where_fairseq_splits(line: str) -> None:
    (blank,) = made_blank([line])
    assert [part for part in blank.split(" ") if part] == tokenize_line(line)
    assert len(blank) == len(line)


def test_model_is_the_same_again_and_names_no_path(model: bytes) -> None:
    assert train_model(LINES, **SETTINGS) == model
    assert b"tmp" not in model


def test_model_is_that_of_training_from_files(model: bytes, tmp_path: Path) -> None:
    """With the paper's flags, in its order: the source's file first."""
    half = len(LINES) // 2
    paths = [tmp_path / "source", tmp_path / "target"]
    for path, lines in zip(paths, (LINES[:half], LINES[half:]), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        f"--input={paths[0]},{paths[1]} --model_prefix={tmp_path / 'model'} --model_type=bpe --vocab_size=60 "
        "--hard_vocab_limit=false --character_coverage=1 --unk_id=0 --bos_id=-1 --eos_id=-1 --pad_id=-1 "
        "--unk_piece=<unk> --normalization_rule_name=identity --minloglevel=2"
    )
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "model.model"))
    ours = sentencepiece.SentencePieceProcessor(model_proto=model)
    assert _listed(ours) == _listed(theirs)


def _listed(processor: Any) -> list[tuple[str, float]]:
    return [(processor.id_to_piece(i), processor.get_score(i)) for i in range(processor.get_piece_size())]


def test_restriction(model: bytes) -> None:
    vocabulary = Encoder(model).vocabulary(LINES[:12])
    ours = sentencepiece.SentencePieceProcessor(model_proto=restricted(model, lambda piece: vocabulary[piece] >= 5))
    for index in range(ours.get_piece_size()):
        piece = ours.id_to_piece(index)
        expected = not ours.is_unknown(index) and len(piece) > 1 and vocabulary[piece] < 5
        assert ours.is_unused(index) == expected, piece


def test_lines_that_sentencepiece_ignores(capsys: pytest.CaptureFixture[str]) -> None:
    train_model(["a b c d e"] * 9 + ["é" * 3000], pieces=8)
    assert "warning: SentencePiece ignores 1 lines of more than 4,192 bytes" in capsys.readouterr().err
    with pytest.raises(PrepareError, match="it ignores the 1 lines of more than 4,192 bytes; split them"):
        train_model(["é" * 3000], pieces=8)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pieces": 5000, "hard_limit": True}, "--pieces 5000: SentencePiece could not train: .*[Vv]ocabulary size"),
        ({"pieces": 5, "hard_limit": False}, "--pieces 5: SentencePiece could not train: "),
        ({"normalization": "nonsense"}, "SentencePiece could not train: .*nonsense"),
    ],
    ids=["too-many", "too-few", "rule"],
)
def test_what_sentencepiece_refuses_is_one_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(PrepareError, match=message) as caught:
        train_model(LINES, **{**SETTINGS, **settings})
    assert "\n" not in str(caught.value)
