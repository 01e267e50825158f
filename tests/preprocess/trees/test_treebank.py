"""The corpus treebank: words, classes and pieces, and the spans over them."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack_preprocess.errors import PrepareError
from fairseq_stack_preprocess.text.sentence_pieces import train_model
from fairseq_stack_preprocess.trees.spans import parse_spans
from fairseq_stack_preprocess.trees.treebank import Options, prepare
from tests.gpt2_folders import save_tokenizer
from tests.preprocess.corpus_folders import manifest_of
from tests.preprocess.trees.treebanks import CAT, DASH, DOG, TRACES, text_of, write_files

FILES = {"train.mrg": CAT + DOG + CAT + TRACES, "valid.mrg": DOG, "test.mrg.gz": DASH}
SPLITS = ("train", "valid", "test")


def run(folder: Path, raw: Path, **options: Any) -> dict[str, Any]:
    """Prepare the corpus without fairseq; return the manifest."""
    paths: dict[str, Any] = {split: (raw / name,) for split, name in zip(SPLITS, FILES, strict=True)}
    prepare(Options(**{**paths, "binarise": False, **options}), folder)
    return manifest_of(folder)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return write_files(tmp_path / "raw", FILES)


def test_classes(raw: Path, tmp_path: Path) -> None:
    manifest = run(tmp_path / "out", raw)
    assert text_of(tmp_path / "out", "train.txt")[1] == "The UNK-LC UNK-LC-ed UNK-LC-ly ."
    assert text_of(tmp_path / "out", "test.txt") == ["UNK-DASH UNK-INITC UNK-LC-s"]
    assert text_of(tmp_path / "out", "test.words") == ["- Zurich cats"]
    assert manifest["dropped"]["train"] == {"no word but traces": 1}
    assert manifest["splits"]["train"]["sentences"] == 3
    assert manifest["splits"]["test"]["tokens_not_in_train"] == 3
    assert list(manifest["inputs"]) == ["train/train.mrg", "valid/valid.mrg", "test/test.mrg.gz"]
    assert str(tmp_path) not in json.dumps(manifest)


def test_words_are_kept_when_told(raw: Path, tmp_path: Path) -> None:
    run(tmp_path / "out", raw, rare_words="keep")
    for split in SPLITS:
        assert text_of(tmp_path / "out", f"{split}.txt") == text_of(tmp_path / "out", f"{split}.words")


def test_folders_and_several_paths(tmp_path: Path) -> None:
    raw = write_files(tmp_path / "raw", {**FILES, "more/b/2.mrg": DASH, "more/a.mrg": DOG, "more/notes.txt": "no tree"})
    manifest = run(tmp_path / "out", raw, train=(raw / "train.mrg", raw / "more"))
    assert list(manifest["inputs"])[:3] == ["train/0/train.mrg", "train/1/a.mrg", "train/1/b/2.mrg"]
    assert text_of(tmp_path / "out", "train.origin")[-2:] == ["train/1/a.mrg\t1", "train/1/b/2.mrg\t1"]
    (raw / "none").mkdir()
    with pytest.raises(PrepareError, match=r"^--train .*none: the folder holds no \.mrg file$"):
        run(tmp_path / "none", raw, train=(raw / "none",))


def test_pieces_of_gpt2(raw: Path, tmp_path: Path) -> None:
    """They are those of the words joined by blanks, whichever files the tokenizer is in; the dictionary has all."""
    tokenizers = pytest.importorskip("tokenizers", reason="GPT-2's pieces are cut by tokenizers")
    save_tokenizer(tmp_path / "gpt2", "The dog and the cat sat. The dog's cats, the naïve ones, don't!")
    (tmp_path / "parts").mkdir()
    for name in ("vocab.json", "merges.txt"):
        shutil.copy(tmp_path / "gpt2" / name, tmp_path / "parts")
    (raw / "train.mrg").write_text("(S (NP (DT The) (NN naïveté)) (POS 's) (VB sat) (. .))\n", encoding="utf-8")
    manifest = run(tmp_path / "out", raw, gpt2=tmp_path / "gpt2")
    run(tmp_path / "again", raw, gpt2=tmp_path / "parts")
    whole = tokenizers.Tokenizer.from_file(str(tmp_path / "gpt2" / "tokenizer.json"))
    for split in SPLITS:
        for name in ("txt", "attach", "pieces-per-word"):
            assert text_of(tmp_path / "out", f"{split}.{name}") == text_of(tmp_path / "again", f"{split}.{name}")
        names = ("words", "txt", "spans", "pieces-per-word")
        for words, text, spans, counts in zip(*(text_of(tmp_path / "out", f"{split}.{x}") for x in names), strict=True):
            pieces = text.split(" ")
            assert pieces == whole.encode(words).tokens
            assert len(parse_spans(spans)) == len(pieces) - 1
            ends = list(itertools.accumulate(map(int, counts.split(" "))))
            cut = [pieces[start:end] for start, end in zip([0, *ends], ends, strict=False)]
            assert [tokenizers.decoders.ByteLevel().decode(word).strip() for word in cut] == words.split(" ")
    listed = {line.rpartition(" ")[0] for line in text_of(tmp_path / "out", "vocabulary.txt")}
    assert listed == whole.get_vocab().keys() - {"<|endoftext|>"}
    assert {"tokenizer.json", "vocab.json", "merges.txt"} <= manifest["inputs"].keys()
    assert (tmp_path / "out" / "tokenizer.json").is_file()


def test_a_space_before_the_first_word(raw: Path, tmp_path: Path) -> None:
    """A tokenizer that puts one there is not GPT-2's."""
    save_tokenizer(tmp_path / "gpt2", "The dog")
    path = tmp_path / "gpt2" / "tokenizer.json"
    tokenizer = json.loads(path.read_text(encoding="utf-8"))
    tokenizer["pre_tokenizer"]["add_prefix_space"] = True
    path.write_text(json.dumps(tokenizer), encoding="utf-8")
    with pytest.raises(PrepareError, match=r"^--gpt2 .*/gpt2: expected .* \(ByteLevel without add_prefix_space\)$"):
        run(tmp_path / "out", raw, gpt2=tmp_path / "gpt2")


def test_given_model(raw: Path, tmp_path: Path) -> None:
    model = train_model(["a dog and a cat"] * 5, pieces=20)
    (tmp_path / "own.model").write_bytes(model)
    manifest = run(tmp_path / "out", raw, piece_model=tmp_path / "own.model")
    assert (tmp_path / "out" / "spm.model").read_bytes() == model
    assert "own.model" in manifest["inputs"]


@pytest.mark.parametrize(
    ("files", "options", "message"),
    [
        ({"train.mrg": TRACES}, {}, "treebank: no sentence of train is left of 1 trees"),
        ({"train.mrg": "(NN a\u2581b)\n"}, {"pieces": 9}, r"train/train\.mrg, line 1: the word 'a▁b' holds U\+2581"),
        ({}, {"pieces": 2}, "--pieces 2: SentencePiece could not train"),
        ({}, {"valid": (Path("nowhere"),)}, "--valid nowhere: no such file or folder"),
    ],
    ids=["no-words", "mark", "few-pieces", "missing"],
)
def test_mistakes_leave_nothing(files: dict[str, str], options: dict[str, Any], message: str, tmp_path: Path) -> None:
    raw = write_files(tmp_path / "raw", {**FILES, **files})
    with pytest.raises(PrepareError, match=message):
        run(tmp_path / "out", raw, **options)
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]


def test_model_that_is_none(raw: Path, tmp_path: Path) -> None:
    with pytest.raises(PrepareError, match=r"train\.mrg is not a SentencePiece model"):
        run(tmp_path / "out", raw, piece_model=raw / "train.mrg")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(PrepareError, match=r"pipe is not a file"):
        run(tmp_path / "out", raw, piece_model=tmp_path / "pipe")


def test_small_pieces(raw: Path, tmp_path: Path) -> None:
    manifest = run(tmp_path / "out", raw, pieces=40)
    out = tmp_path / "out"
    counts = [int(count) for count in text_of(out, "valid.pieces-per-word")[0].split(" ")]
    pieces = text_of(out, "valid.txt")[0].split(" ")
    assert len(counts) == 5
    assert sum(counts) == len(pieces) > 5
    assert text_of(out, "valid.word-spans") == ["1-2 3-4 3-5 1-5"]
    assert "".join(pieces) == "▁The▁dog▁barked▁loudly▁."
    dictionary = {line.rpartition(" ")[0] for line in text_of(out, "vocabulary.txt")}
    assert {"▁", *"Thedogbarkedloudly."} <= dictionary
    assert manifest["splits"]["valid"]["unknown_tokens"] == 0
