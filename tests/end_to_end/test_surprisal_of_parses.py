"""Surprisals, BLiMP and SyntaxGym of a model that parses: sums over a beam of parses, against the golden model."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from fairseq.data import Dictionary

from fairseq_stack import cli
from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.blimp import BLiMPResult
from fairseq_stack.evaluation.syntaxgym import SyntaxGymResult
from fairseq_stack.hub.interface import LanguageModelHub
from fairseq_stack.hub.parse_beams import BEAM_SIZE
from fairseq_stack.hub.surprisals import Word, surprisals
from tests.end_to_end.fairseq_commands import hub_of, tab_separated
from tests.evaluation.test_blimp import line
from tests.evaluation.test_syntaxgym import item_of, suite_file
from tests.helpers import each_golden_file
from tests.modules.pushdown import parse, tiny_model


@pytest.fixture
def hub(pushdown_model: Path) -> LanguageModelHub:
    return hub_of(pushdown_model)


def with_golden_model(hub: LanguageModelHub, symbols: list[str]) -> LanguageModelHub:
    """The hub with the golden model, in which ROOT is symbol 0 and the end of a sentence symbol 1."""
    bos, pad, eos, unk = symbols[:4]
    dictionary = Dictionary(bos=bos, pad=pad, eos=eos, unk=unk, extra_special_symbols=symbols[4:])
    dictionary.eos_index, dictionary.pad_index, dictionary.unk_index = 1, 0, 0
    hub.src_dict = hub.tgt_dict = dictionary
    hub.models[0].decoder.network = tiny_model()
    return hub


@pytest.fixture
def golden(hub: LanguageModelHub) -> LanguageModelHub:
    return with_golden_model(hub, ["x0", "</s>", *(f"x{number}" for number in range(2, 12))])


def text_of(words: list[int]) -> str:
    return " ".join(f"x{word}" for word in words)


def numbers(words: list[Word]) -> list[float]:
    return [word.surprisal for word in words]


@each_golden_file("pushdown/tiny_model_parses.json")
def test_golden_surprisals(path: Path, golden: LanguageModelHub) -> None:
    """Of both kinds, with each beam; all strings at once."""
    strings = json.loads(path.read_text(encoding="utf-8"))["strings"]
    texts = [text_of(string["words"]) for string in strings]
    for number, size in enumerate((1, 2, 4, 300)):
        for telescoping, kind in ((False, "conditional"), (True, "telescoping")):
            scored = list(surprisals(golden, texts, beam_size=size, telescoping=telescoping))
            for words, string in zip(scored, strings, strict=True):
                beams = [beam for beam in string["beams"] if beam["mode"] == "legal"]
                assert beams[number]["beam"] == size
                assert numbers(words) == pytest.approx(beams[number][f"surprisal_{kind}"], rel=1e-9)
                if size == 300:
                    assert numbers(words) == pytest.approx(string["exact_surprisal"], rel=1e-9)
                if telescoping:
                    assert math.fsum(numbers(words)) == pytest.approx(-beams[number]["log_p_marginal"], rel=1e-9)


@pytest.fixture
def of_pieces(hub: LanguageModelHub, monkeypatch: pytest.MonkeyPatch) -> LanguageModelHub:
    """The golden model of words in which a piece is a letter; one of 6 begins a word, and one of 5 continues it."""

    monkeypatch.setattr(hub, "cut", lambda text: [x for word in text.split() for x in (f"▁{word[0]}", *word[1:])])
    return with_golden_model(hub, ["z", "</s>", *"abcd", *(f"▁{letter}" for letter in "abcdef")])


def test_corrected_surprisals_are_a_distribution(of_pieces: LanguageModelHub) -> None:
    """Over the end, all words of up to two pieces, and words that begin with two."""

    def probability(text: str, correct: bool) -> float:
        (words,) = surprisals(of_pieces, [f"da bc {text}"], beam_size=2, correct_word_ends=correct)
        return math.exp(-words[2].surprisal)

    end = probability("", True)
    begins = probability("", False) / end  # that a word begins here, or nothing does
    two = [first + second for first in "abcdef" for second in "abcdz"]
    total = end + sum(probability(word, True) for word in "abcdef")
    total += sum(probability(word, False) / begins for word in two)
    assert 0.01 < begins < 0.99
    assert total == pytest.approx(1, abs=1e-12)


def test_corrected_telescoping_surprisals_add_up(of_pieces: LanguageModelHub) -> None:
    """To the surprisal of the string, given that it begins with a piece that begins a word, or has none."""
    plain, corrected = (
        math.fsum(
            word.surprisal
            for words in surprisals(of_pieces, ["da bc"], beam_size=2, telescoping=True, correct_word_ends=correct)
            for word in words
        )
        for correct in (False, True)
    )
    network = of_pieces.models[0].decoder.network
    with torch.no_grad():
        begins = network.next_words(network.initial_state(1))[0, [1, *range(6, 12)]].logsumexp(0)
    assert corrected == pytest.approx(plain + float(begins), abs=1e-12)


def test_the_table(
    pushdown_model: Path, hub: LanguageModelHub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text").write_text("a b c\n\nd a\n")
    command = ["surprisal", str(pushdown_model), str(tmp_path / "text"), "--unit", "nats", "--end"]
    for options, telescoping in ((["--beam", "2"], False), (["--beam", "2", "--telescoping"], True), ([], False)):
        assert cli.main([*command, *options]) == 0
        printed = [float(row[4]) for row in tab_separated(capsys.readouterr().out)[1:]]
        expected: list[float] = []
        for text in ("a b c", "", "d a"):
            parses = parse(hub.models[0].decoder.network, hub.encode(text)[:-1], beam_size=2 if options else BEAM_SIZE)
            expected += (parses.telescoping_surprisals if telescoping else parses.surprisals).tolist()
        assert printed == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize(("option", "end"), [([], "yes"), (["--without-end"], "no")], ids=["end", "without-end"])
def test_blimp(option: list[str], end: str, pushdown_model: Path, hub: LanguageModelHub, tmp_path: Path) -> None:
    """A sentence has the probability that the parses of the beam have together."""
    pairs = [("a b c d", "b a c d"), ("d c", "c d"), ("a a a b", "a b a a")]
    (tmp_path / "x.jsonl").write_text("\n".join(line(good, bad=bad) for good, bad in pairs))
    options = ["--blimp", str(tmp_path), "--bootstrap", "5", "--json", str(tmp_path / "out")]
    assert cli.main(["evaluate-blimp", str(pushdown_model), *options, *option, "--beam", "3"]) == 0
    result = BLiMPResult.read(tmp_path / "out")

    def score(text: str) -> float:
        parses = parse(hub.models[0].decoder.network, hub.encode(text)[:-1], beam_size=3)
        return -float(parses.telescoping_surprisals[: len(text.split()) + (end == "yes")].sum())

    assert result.overall.accuracy.value == pytest.approx(sum(score(a) > score(b) for a, b in pairs) / len(pairs))
    assert f"|text:as-is|end:{end}|beam:3|ties:half|bootstrap:5|" in result.signature


def test_syntaxgym(pushdown_model: Path, hub: LanguageModelHub, tmp_path: Path) -> None:
    items = [item_of(1, x=["a b", "c"])]
    suite_file(tmp_path / "cleft.json", predictions=[{"formula": "(1;%x%) > (2;%x%)"}], items=items)
    parses = parse(hub.models[0].decoder.network, hub.encode("a b c")[:-1], beam_size=2)
    for options, name, of_words in (
        ([], "conditional", parses.surprisals),
        (["--telescoping"], "telescoping", parses.telescoping_surprisals),
    ):
        command = ["evaluate-syntaxgym", str(pushdown_model), "--suites", str(tmp_path), "--beam", "2", *options]
        assert cli.main([*command, "--json", str(tmp_path / "out")]) == 0
        result = SyntaxGymResult.read(tmp_path / "out")
        bits = (of_words / math.log(2)).tolist()
        expected = {1: bits[0] + bits[1], 2: bits[2]}
        assert {x.number: x.surprisal for x in result.suites[0].regions} == pytest.approx(expected, abs=1e-5)
        assert f"|text:as-is|beam:2|surprisals:{name}|" in result.signature
        (tmp_path / "out").unlink()


def test_mistakes(
    pushdown_model: Path,
    language_model: Path,
    hub: LanguageModelHub,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    (tmp_path / "text").write_text("a b\n")
    for model, options, message in (
        (language_model, ["--beam", "3"], "error: --beam: the model does not parse sentences, so it has no beam"),
        (language_model, ["--telescoping"], "error: --telescoping: the model does not parse sentences"),
        (f"{pushdown_model}:{pushdown_model}", [], "the models of an ensemble have different parses: name one"),
    ):
        assert cli.main(["surprisal", str(model), str(tmp_path / "text"), *options]) == 2
        assert message in capsys.readouterr().err
    with pytest.raises(
        UserError, match=r"^sentence 2 \(a </s> b\): </s> ends a sentence, and cannot be a word of one$"
    ):
        list(surprisals(hub, ["a", "a </s> b"]))
