"""Beams of parses against all parses of the golden model."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from fairseq_stack.modules import parse_all
from tests.helpers import assert_normwise_close, each_golden_file
from tests.modules.pushdown import parse, tiny_model

MODES = {"legal": True, "all": False}


def golden_strings(path: Path) -> list[dict[str, Any]]:
    strings: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["strings"]
    assert len(strings) == 3
    return strings


def as_double(numbers: Iterable[float]) -> Tensor:
    return torch.tensor(list(numbers), dtype=torch.float64)


@each_golden_file("pushdown/tiny_model_parses.json")
def test_golden_probabilities_of_all_parses(path: Path) -> None:
    """Word by word and attachment by attachment, computed in parallel."""
    model = tiny_model()
    for string in golden_strings(path):
        parses = string["parses"]
        assert len(parses) == 132
        attachments = torch.tensor([[0, *x["r"], 0] for x in parses])
        tokens = torch.tensor([[model.root, *string["words"], model.end]]).expand(132, -1)
        state = model.initial_state(132)
        for k in range(1, tokens.size(1)):
            words, attached = tokens[:, k], attachments[:, k]
            log_words = model.next_words(state).gather(1, words.unsqueeze(1)).squeeze(1)
            assert_normwise_close(log_words, as_double(x["word"][k - 1] for x in parses), 1e-9)
            for mode, legal_only in MODES.items():
                actual = model.next_attachments(state, words, legal_only=legal_only)
                expected = as_double(x[f"attach_{mode}"][k - 1] for x in parses)
                log_attached = actual.gather(1, attached.unsqueeze(1)).squeeze(1)
                assert_normwise_close(log_attached, expected, 1e-9)
            state = model.step(state, words, attached) if k < tokens.size(1) - 1 else state


@pytest.mark.parametrize("mode", MODES)
@each_golden_file("pushdown/tiny_model_parses.json")
def test_golden_exact_marginals(path: Path, mode: str) -> None:
    """A beam that holds all parses finds each with its probability, and the exact marginal and surprisals."""
    model = tiny_model()
    for string in golden_strings(path):
        actual = parse(model, torch.tensor(string["words"]), beam_size=300, legal_only=MODES[mode])
        expected = {tuple(x["r"]): x[f"log_p_{mode}"] for x in string["parses"]}
        assert [tuple(x) for x in actual.attachments.tolist()] == sorted(expected, key=lambda r: -expected[r])
        assert_normwise_close(actual.log_probabilities, as_double(sorted(expected.values(), reverse=True)), 1e-9)
        assert float(actual.log_probability) == pytest.approx(string[f"log_p_{mode}"], rel=1e-9)
        assert int(actual.are_trees.sum()) == string["n_complete"] == 42
        complete = {tuple(x["r"]) for x in string["parses"] if x["complete"]}
        assert {tuple(x) for x in actual.attachments[actual.are_trees].tolist()} == complete
        of_complete = actual.log_probabilities[actual.are_trees].logsumexp(0)
        assert float(of_complete) == pytest.approx(string[f"log_p_{mode}_complete"], rel=1e-9)
        if mode == "legal":
            assert actual.attachments[actual.are_trees][0].tolist() == string["best_legal_complete"]
            for surprisals in (actual.surprisals, actual.telescoping_surprisals):
                assert_normwise_close(surprisals, as_double(string["exact_surprisal"]), 1e-9)


@each_golden_file("pushdown/tiny_model_parses.json")
def test_golden_beams(path: Path) -> None:
    model = tiny_model()
    for string in golden_strings(path):
        sizes = Counter(beam["beam"] for beam in string["beams"])
        assert sizes == {1: 2, 2: 2, 4: 2, 300: 2}
        for beam in string["beams"]:
            actual = parse(model, torch.tensor(string["words"]), beam_size=beam["beam"], legal_only=MODES[beam["mode"]])
            assert len(actual.attachments) == min(beam["beam"], 132)
            assert actual.attachments[0].tolist() == beam["best"]
            assert float(actual.log_probabilities[0]) == pytest.approx(beam["best_log_p"], rel=1e-9)
            assert float(actual.log_probability) == pytest.approx(beam["log_p_marginal"], rel=1e-9)
            for rank, hypothesis in enumerate(beam["hypotheses"]):
                assert actual.attachments[rank].tolist() == hypothesis["r"]
                assert float(actual.log_probabilities[rank]) == pytest.approx(hypothesis["log_p"], rel=1e-9)
            for kind, surprisals in (
                ("conditional", actual.surprisals),
                ("telescoping", actual.telescoping_surprisals),
            ):
                expected = as_double(beam[f"surprisal_{kind}"])
                assert_normwise_close(surprisals, expected, 1e-9, kind)


def test_no_words() -> None:
    model = tiny_model()
    actual = parse(model, torch.tensor([], dtype=torch.long), beam_size=3)
    assert actual.attachments.shape == (1, 0)
    assert actual.are_trees.tolist() == [True]
    expected = model.next_words(model.initial_state(1))[0, model.end]
    assert_normwise_close(actual.log_probability, expected, 1e-14)


def test_many_strings_at_once() -> None:
    """As one by one; the distribution of the next word has its surprisal, and is one."""
    model = tiny_model()
    words = torch.randint(2, 12, (5, 7), generator=torch.Generator().manual_seed(1))
    for beam_size in (1, 3, 300):
        together = parse_all(model, words, beam_size=beam_size, keep_next_words=True)
        for actual, string in zip(together, words, strict=True):
            alone = parse(model, string, beam_size=beam_size)
            assert torch.equal(actual.attachments, alone.attachments)
            assert torch.equal(actual.are_trees, alone.are_trees)
            for name in ("log_probabilities", "surprisals", "telescoping_surprisals"):
                assert_normwise_close(getattr(actual, name), getattr(alone, name), 1e-12, name)
            assert alone.next_words is None and actual.next_words is not None
            assert_normwise_close(actual.next_words.logsumexp(1).exp(), torch.ones(8), 1e-12)
            symbols = torch.cat([string, torch.tensor([model.end])])
            of_words = -actual.next_words.gather(1, symbols.unsqueeze(1)).squeeze(1)
            assert_normwise_close(of_words, actual.surprisals, 1e-12)


def test_prefixes() -> None:
    """A prefix has the surprisals of the string, and all its parses together the sum of them."""
    model, words = tiny_model(), torch.tensor([[2, 3, 4, 5]])
    for beam_size in (2, 300):
        (actual,) = parse_all(model, words, beam_size=beam_size, are_prefixes=True)
        (whole,) = parse_all(model, words, beam_size=beam_size)
        assert actual.attachments.shape == (min(beam_size, 14), 4)
        assert actual.are_trees.sum() == (5 if beam_size == 300 else actual.are_trees.sum())
        assert_normwise_close(actual.surprisals, whole.surprisals[:-1], 1e-14)
        assert_normwise_close(actual.telescoping_surprisals, whole.telescoping_surprisals[:-1], 1e-14)
    assert_normwise_close(actual.log_probability, -actual.surprisals.sum(), 1e-12)
    (nothing,) = parse_all(model, words[:, :0], beam_size=2, are_prefixes=True)
    assert nothing.attachments.shape == (1, 0) and float(nothing.log_probability) == 0


@pytest.mark.parametrize("impossible", [-math.inf, math.nan])
def test_impossible_words(impossible: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A string whose probability is 0 or not a number has parses, too, and others keep theirs."""
    model = tiny_model()
    good = parse(model, torch.tensor([2, 3, 4]), beam_size=2)
    log_probabilities = model.word_log_probabilities

    def with_an_impossible_word(hidden: Tensor) -> Tensor:
        return torch.where(torch.arange(12) == 5, impossible, log_probabilities(hidden))

    monkeypatch.setattr(model, "word_log_probabilities", with_an_impossible_word)
    bad, actual = parse_all(model, torch.tensor([[2, 5, 4], [2, 3, 4]]), beam_size=2)
    assert not bad.log_probabilities.isfinite().any()
    assert bad.attachments.shape == actual.attachments.shape
    assert_normwise_close(actual.surprisals, good.surprisals, 1e-12)


def test_wrong_arguments() -> None:
    model = tiny_model()
    with pytest.raises(ValueError, match=r"^words: expected a LongTensor of shape \(B, n\), got \(2,\) of"):
        parse_all(model, torch.tensor([2, 3]), beam_size=1)
    with pytest.raises(ValueError, match=r"^beam_size: expected at least 1, got 0$"):
        parse(model, torch.tensor([2, 3]), beam_size=0)
