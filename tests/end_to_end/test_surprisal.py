"""Surprisals of words, for all families of language models, against fairseq's scores and against enumeration."""

from __future__ import annotations

import itertools
import math
import os
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack import cli
from fairseq_stack.errors import UserError
from fairseq_stack.hub.interface import LanguageModelHub, load
from fairseq_stack.hub.surprisals import Word, regions_of, surprisals
from tests.end_to_end.fairseq_commands import LANGUAGE_MODEL, TRAINING, hub_of, run, tab_separated

SENTENCES = ["a b c", "d", "", "c c a b d a", "a"]


@pytest.mark.parametrize("model", ["language_model", "recurrent_model", "stock_model"])
def test_they_are_the_scores_of_the_model(
    model: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairseq_stack.hub.surprisals.SENTENCES_AT_ONCE", 2)
    hub = hub_of(request.getfixturevalue(model))
    scored = list(surprisals(hub, SENTENCES, max_tokens=12))
    assert [[word.text for word in words] for words in scored] == [[*text.split(), "</s>"] for text in SENTENCES]
    for text, words in zip(SENTENCES, scored, strict=True):
        expected = [-float(score) for score in hub.score(text)["positional_scores"]]
        assert [word.surprisal for word in words] == pytest.approx(expected, abs=2e-6)
        assert all(word.num_tokens == 1 and not word.is_unknown for word in words)


def test_the_model_can_be_differentiated_after_scores(language_model: Path) -> None:
    hub = hub_of(language_model)
    hub.score("a b c")
    logits, _ = hub.models[0](hub.encode("a b c")[None])
    logits.logsumexp(2).sum().backward()
    assert all(parameter.grad is not None for parameter in hub.models[0].parameters())


def test_the_table(language_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("a b\n\nzebra d\n")
    assert cli.main(["surprisal", str(language_model), str(tmp_path / "text")]) == 0
    printed = capsys.readouterr()
    assert "unknown words: 1 (is_unk is 1)\n" in printed.err
    bits = tab_separated(printed.out)
    assert bits[0] == ["sentence", "word_id", "word", "n_tokens", "surprisal_bits", "is_unk"]
    assert [row[:4] + row[5:] for row in bits[1:]] == [
        ["1", "1", "a", "1", "0"],
        ["1", "2", "b", "1", "0"],
        ["3", "1", "zebra", "1", "1"],
        ["3", "2", "d", "1", "0"],
    ]
    (tmp_path / "text").write_text("\ufeffa b\n\nzebra d")
    with (tmp_path / "text").open() as file:
        kept = os.dup(0)
        os.dup2(file.fileno(), 0)  # standard input
    try:
        code = cli.main(["surprisal", str(language_model.parent / "checkpoint_last.pt"), "--unit", "nats", "--end"])
    finally:
        os.dup2(kept, 0)
        os.close(kept)
    assert code == 0
    nats = tab_separated(capsys.readouterr().out)
    assert nats[0][4] == "surprisal_nats"
    assert [row[2] for row in nats[1:]] == ["a", "b", "</s>", "</s>", "zebra", "d", "</s>"]
    same = [float(row[4]) / math.log(2) for row in nats[1:] if row[2] != "</s>"]
    assert same == pytest.approx([float(row[4]) for row in bits[1:]], abs=2e-6)


def test_rare_words_are_read_as_their_classes(tmp_path: Path) -> None:
    (tmp_path / "trees").write_text("(S (DT the) (NN cat) (VB runs))\n(S (DT the) (NN cat) (VB sleeps) (RB loudly))\n")
    splits = [option for split in ("train", "valid", "test") for option in (f"--{split}", str(tmp_path / "trees"))]
    assert cli.main(["prepare", "treebank", str(tmp_path / "data"), *splits]) == 0
    run("train", tmp_path / "data" / "data-bin", *LANGUAGE_MODEL, *TRAINING, "--save-dir", tmp_path)
    hub = hub_of(tmp_path / "checkpoint_last.pt", tmp_path / "data")
    assert hub.cut("the UNK-NUM 12 cat") == ["the", "UNK-NUM", "UNK-NUM", "cat"]
    assert hub.unknown_words("the zebra runs") == ["zebra"]
    words, as_classes = surprisals(hub, ["the zebra runs slowly", "the UNK-LC UNK-LC-s UNK-LC-ly"])
    assert [word.text for word in words] == ["the", "zebra", "runs", "slowly", "</s>"]
    assert [word.is_unknown for word in words] == [False, True, True, True, False]
    assert [word.surprisal for word in words] == [word.surprisal for word in as_classes]


@pytest.fixture(scope="module")
def of_pieces(tmp_path_factory: pytest.TempPathFactory) -> LanguageModelHub:
    """A model of words of a and b, each of which is a piece; ▁ marks the first one of a word."""
    folder = tmp_path_factory.mktemp("pieces")
    strings = itertools.islice(itertools.product(("▁a", "▁b"), ("▁a", "a", "b"), ("▁b", "a", "b"), ("a", "▁b")), 30)
    (folder / "text").write_text("".join(f"{' '.join(string)}\n" for string in strings))
    texts = [option for split in ("train", "valid") for option in (f"--{split}pref", folder / "text")]
    run("preprocess", "--only-source", *texts, "--destdir", folder / "data")
    options = [*LANGUAGE_MODEL, "--compact-vocab", *TRAINING]
    run("train", folder / "data", *options, "--save-dir", folder)
    return hub_of(folder / "checkpoint_last.pt")


def cut(text: str) -> list[str]:
    return [piece for word in text.split() for piece in (f"▁{word[0]}", *word[1:])]


def test_words_of_pieces(of_pieces: LanguageModelHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_pieces, "cut", cut)
    (words,) = surprisals(of_pieces, ["ab a bab"])
    regions = regions_of(["ab", "a bab"], words)
    assert [(region.text, region.num_tokens) for region in regions] == [("ab", 2), ("a bab", 4)]
    assert [(word.text, word.num_tokens) for word in words] == [("ab", 2), ("a", 1), ("bab", 3), ("</s>", 1)]
    scores = of_pieces.score("▁a b ▁a ▁b a b")["positional_scores"].tolist()
    expected = [-sum(scores[:2]), -scores[2], -sum(scores[3:6]), -scores[6]]
    assert [word.surprisal for word in words] == pytest.approx(expected, abs=2e-6)


def test_corrected_surprisals_are_a_distribution(of_pieces: LanguageModelHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over all words up to a length, the end, and the words that are longer."""
    monkeypatch.setattr(of_pieces, "cut", cut)
    of_pieces.double()
    longest, context = 3, "ab a"
    words = ["".join(word) for n in range(1, longest + 1) for word in itertools.product("ab", repeat=n)]
    texts = [f"{context} {word}" for word in words]
    plain, corrected = (
        [words[2] for words in surprisals(of_pieces, texts, correct_word_ends=correct)] for correct in (False, True)
    )
    ends = [words_of(of_pieces, context, correct)[2] for correct in (False, True)]
    begins = probability(ends[0]) / probability(ends[1])  # that a word begins after the context, or nothing does
    longer = sum(
        probability(one) / begins - probability(other)
        for one, other in zip(plain, corrected, strict=True)
        if one.num_tokens == longest
    )
    assert 0.01 < longer < 1
    assert 0.01 < begins < 0.999
    assert sum(map(probability, corrected)) + probability(ends[1]) + longer == pytest.approx(1, abs=1e-9)
    beginning = words_of(of_pieces, "", True)[0].surprisal - words_of(of_pieces, "", False)[0].surprisal
    total, of_pieces_alone = (
        sum(word.surprisal for word in words_of(of_pieces, texts[-1], correct)) for correct in (True, False)
    )
    assert total == pytest.approx(of_pieces_alone + beginning, abs=1e-9)


def words_of(hub: LanguageModelHub, text: str, correct: bool) -> list[Word]:
    (words,) = surprisals(hub, [text], correct_word_ends=correct)
    return words


def probability(word: Word) -> float:
    return math.exp(-word.surprisal)


def test_mistakes(
    of_pieces: LanguageModelHub,
    language_model: Path,
    translation_model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plain = hub_of(language_model)

    def refusal(hub: Any, *texts: str, **options: Any) -> str:
        with pytest.raises(UserError) as caught:
            list(surprisals(hub, texts, **options))
        return str(caught.value)

    assert refusal(of_pieces, "▁a b") == "sentence 1 has 2 words, but its pieces make 1: ▁a b"
    assert "sentence 2 (zebra): the dictionary of the model lacks 'zebra'" in refusal(of_pieces, "▁b", "zebra")
    assert "whose surprisals need no correction" in refusal(plain, "a", correct_word_ends=True)
    assert "no language model" in refusal(load(translation_model), "a")
    (words,) = surprisals(plain, ["a b c"])
    with pytest.raises(UserError, match=r"the regions 'a \| b' have 2 words, but the model reads 'a b c'"):
        regions_of(["a", "b"], words)
    (tmp_path / "text").write_text(f"a\n{'b ' * 60}\n")
    assert cli.main(["surprisal", str(language_model), str(tmp_path / "text")]) == 2
    printed = capsys.readouterr()
    assert "sentence 2 (b b b b b b b b b b b b b b b b b b b b b b [...]) has 61 tokens" in printed.err
    assert printed.out == "", "no part of the table"
