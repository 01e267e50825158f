"""fairseq-stack evaluate-transformations: language models and encoder-decoders, against one forward pass per pair."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fairseq_stack import cli
from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.transformations import TransformationResult, TransformationScores
from fairseq_stack.hub.answers import Answer, AnsweringHub, require_answers, score_answers
from fairseq_stack.hub.controls import PERMUTED, apply_control
from fairseq_stack.hub.interface import LanguageModelHub, TransductionHub, load
from fairseq_stack.modules import NondeterministicStackAttention
from tests.end_to_end.conftest import trained
from tests.end_to_end.fairseq_commands import BARE_LANGUAGE_MODEL, BARE_RECURRENT, TRANSLATION, rows_of
from tests.preprocess.transformations.oracle import CLASS

PAIRS = ["--source-lang", "source", "--target-lang", "target"]
MODELS: dict[str, tuple[str, list[Any]]] = {
    "transformer": ("question-formation", [*BARE_LANGUAGE_MODEL, "--stack-layers", "sdpa,nd-2-2-3"]),
    "lstm": ("tense-reinflection", [*BARE_RECURRENT, "--stack", "sup-3", "--compact-vocab"]),
    "translation": ("tense-reinflection", [*TRANSLATION, *PAIRS]),
}
AUXILIARIES = ["does", "doesn't", "do", "don't"]
with_one_model = pytest.mark.parametrize("name", ["transformer"], indirect=True)


def prepare(folder: Path, task: str, *options: Any) -> Path:
    sizes = ["--train-size", 60, "--valid-size", 6, "--test-size", 40, "--gen-size", 12, "--force"]
    assert cli.main(["prepare", "transformations", str(folder), "--task", task, *map(str, [*sizes, *options])]) == 0
    return folder


@pytest.fixture(scope="module", params=MODELS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def corpus(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepare(tmp_path_factory.mktemp("corpus") / "pairs", MODELS[name][0])


@pytest.fixture(scope="module")
def checkpoint(name: str, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(corpus / "data-bin", MODELS[name][1], tmp_path_factory)


@pytest.fixture
def hub(corpus: Path, checkpoint: Path) -> AnsweringHub:
    return require_answers(load(checkpoint, corpus / "data-bin"))


def evaluate(*arguments: Any, code: int = 0) -> None:
    assert cli.main(["evaluate-transformations", *map(str, arguments), "--cpu", "--bootstrap", "20"]) == code


@torch.no_grad()
def predicted(hub: AnsweringHub, source: str, answer: str) -> tuple[Tensor, Tensor]:
    """The log-probabilities (m, V) along an answer, padding left out of the best, and the tokens of the answer (m,)."""
    dictionary, model = hub.tgt_dict, hub.models[0]
    before, after = ([dictionary.index(word) for word in text.split()] for text in (source, answer))
    end = dictionary.eos()
    if isinstance(hub, LanguageModelHub):
        outputs = model(torch.tensor([[end, *before, *after]]))
    else:
        outputs = model(torch.tensor([[*before, end]]), torch.tensor([len(before) + 1]), torch.tensor([[end, *after]]))
    log_probs = model.get_normalized_probs(outputs, log_probs=True, sample=None)[0, -len(after) - 1 :]
    log_probs[:, dictionary.pad()] = -math.inf
    return log_probs, torch.tensor([*after, end])


def naive(hub: AnsweringHub, source: str, target: str, linear: str, structure: str) -> dict[str, float | None]:
    """What the row of a pair should say."""
    scores, tokens = predicted(hub, source, target)
    row: dict[str, float | None] = dict.fromkeys(("deciding_word", "restricted", "probability"))
    words = target.split()
    if source.endswith((" quest", " PRESENT")):
        place, rivals = 0, AUXILIARIES
        if source.endswith(" PRESENT"):
            verbs = [place for place, word in enumerate(words) if CLASS[word] in "vwtu"]
            place = verbs[structure.startswith("R")]
            stem = words[place].removesuffix("s")
            rivals = [stem, f"{stem}s"]
        restricted = max(rivals, key=lambda word: float(scores[place, hub.tgt_dict.index(word)]))
        row["deciding_word"] = float(hub.tgt_dict[int(scores[place].argmax())] == words[place])
        row["restricted"] = float(restricted == words[place])
        row["probability"] = math.exp(scores[place, tokens[place]])
    for suffix, key, answer in (("", "full_sentence", target), ("_linear", "linear_answer", linear)):
        scores, tokens = predicted(hub, source, answer)
        row[f"nats{suffix}"] = -float(scores.gather(1, tokens.unsqueeze(1)).sum())
        row[key] = float(scores.argmax(1).eq(tokens).all())
    return row


def columns(corpus: Path, split: str) -> list[tuple[str, ...]]:
    names = ("source", "target", "linear", "structure")
    return list(zip(*((corpus / f"text/{split}.{name}").read_text().splitlines() for name in names), strict=True))


@pytest.mark.parametrize("split", ["test", "gen"])
def test_rows_and_scores_are_those_of_single_pairs(
    split: str, corpus: Path, checkpoint: Path, hub: AnsweringHub, tmp_path: Path
) -> None:
    outputs = ["--json", tmp_path / "result.json", "--csv", tmp_path / "pairs.csv"]
    evaluate(checkpoint, "--data", corpus, "--split", split, "--max-tokens", 200, *outputs)
    pairs = columns(corpus, split)
    expected = [naive(hub, *pair) for pair in pairs]
    rows = rows_of(tmp_path / "pairs.csv")
    assert [tuple(row[name] for name in ("source", "target", "linear", "structure")) for row in rows] == pairs
    for row, scores in zip(rows, expected, strict=True):
        actual = {name: float(row[name]) if row[name] else None for name in scores}
        assert actual == pytest.approx(scores, abs=2e-5)

    result = TransformationResult.read(tmp_path / "result.json")
    subjects = [structure.split()[0] for *_, structure in pairs]
    assert {scores.subject for scores in result.by_subject} == set(subjects)
    for of_group in (result.overall, *result.by_subject):
        chosen = [place for place, subject in enumerate(subjects) if of_group.subject in ("all", subject)]
        check([pairs[place] for place in chosen], [expected[place] for place in chosen], of_group)


def check(
    pairs: Sequence[tuple[str, ...]], rows: Sequence[dict[str, float | None]], scores: TransformationScores
) -> None:
    """Check scores against the mean of naive ones."""
    transformed = [row for row in rows if row["deciding_word"] is not None]
    differing = [row for row, (_, target, linear, _) in zip(rows, pairs, strict=True) if target != linear]
    assert (scores.pairs, scores.transformed, scores.differing) == (len(rows), len(transformed), len(differing))

    def mean(of: Sequence[dict[str, float | None]], value: Callable[[dict[str, Any]], float]) -> Any:
        return pytest.approx(sum(map(value, of)) / len(of), abs=1e-5) if of else None

    tokens = sum(len(target.split()) + 1 for _, target, *_ in pairs)
    means = {
        "full_sentence": mean(rows, lambda row: row["full_sentence"]),
        "linear_answer": mean(rows, lambda row: row["linear_answer"]),
        "deciding_word": mean(transformed, lambda row: row["deciding_word"]),
        "restricted": mean(transformed, lambda row: row["restricted"]),
        "probability": mean(transformed, lambda row: row["probability"]),
        "conditional_probability": mean(rows, lambda row: math.exp(-row["nats"])),
        "cross_entropy": mean(rows, lambda row: row["nats"] * len(rows) / tokens),
        "log_ratio": mean(differing, lambda row: row["nats_linear"] - row["nats"]),
        "prefers_target": mean(differing, lambda row: row["nats_linear"] > row["nats"]),
    }
    for name, expected in means.items():
        estimate = getattr(scores, name)
        assert (estimate and estimate.value) == expected, name
        assert estimate is None or estimate.low - 1e-9 <= estimate.value <= estimate.high + 1e-9 or len(rows) < 20


def test_a_greedy_search_writes_the_best_words(corpus: Path, hub: AnsweringHub) -> None:
    """What it writes is the best everywhere, and nothing else is."""
    longest = 12
    for source in (corpus / "text/test.source").read_text().splitlines()[:8]:
        (best, *_) = hub.generate(hub.encode(source), beam=1, max_len_a=0, max_len_b=longest + 40)
        written = hub.tgt_dict.string(best["tokens"]).split()
        words = written[len(source.split()) :] if isinstance(hub, LanguageModelHub) else written
        other = [*words[:2], "yak" if words[2:3] != ["yak"] else "newt", *words[3:]]
        answers = [Answer(source.split(), words[:longest]), Answer(source.split(), other[:longest])]
        scores = dict(score_answers(hub, answers, batch_size=None, max_tokens=None))
        assert all(scores[0].is_best[:-1])
        assert scores[0].is_best[-1] == (len(words) <= longest)
        assert not all(scores[1].is_best)


@with_one_model
def test_table_and_signature(
    corpus: Path, checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = []
    for options in (["--data", corpus], ["--data", corpus / "data-bin", "--batch-size", 7]):
        evaluate(checkpoint, *options, "--split", "gen", "--json", tmp_path / "result.json")
        results.append(TransformationResult.read(tmp_path / "result.json"))
    printed = capsys.readouterr().out.splitlines()
    result = results[0]
    assert results[1].signature == result.signature == printed[-1]
    assert results[1].overall.cross_entropy.value == pytest.approx(result.overall.cross_entropy.value, abs=1e-6)
    assert result.signature.startswith("task:question-formation|split:gen|pairs:12|sha:")
    cells = (map(str.strip, line.split("|")[1:-1]) for line in printed if line.startswith("|"))
    rows = {name: values for name, *values in cells}
    assert rows[""] == ["all", "interval", "RO", "RSt", "RSi"]
    assert rows["pairs"] == ["12", "", "4", "5", "3"]
    assert {"first word", "first word, restricted", "probability of first word"} < rows.keys()


@with_one_model
def test_controls(corpus: Path, checkpoint: Path, tmp_path: Path) -> None:
    """A memory as long as the strings changes nothing."""
    nats = []
    for control in ("", "memory-100", "memory-1", PERMUTED):
        options = ["--control", control] if control else []
        evaluate(checkpoint, "--data", corpus, "--split", "gen", *options, "--json", tmp_path / "result.json")
        result = TransformationResult.read(tmp_path / "result.json")
        assert (f"|control:{control}|" in result.signature) == bool(control)
        nats.append(result.overall.cross_entropy.value)
    assert nats[1] == pytest.approx(nats[0], abs=1e-6)
    assert min(abs(x - y) for x, y in itertools.combinations(nats[1:], 2)) > 1e-6


@with_one_model
def test_permuted_readings(hub: AnsweringHub) -> None:
    """Each position gets the reading of an earlier one; the first keeps its own."""
    (stack,) = (module for module in hub.modules() if isinstance(module, NondeterministicStackAttention))
    inputs = torch.randn(2, 30, stack.model_size)
    before = stack(inputs)
    apply_control(hub, PERMUTED, seed=1)
    after = stack(inputs)
    distances = (after.unsqueeze(2) - before.unsqueeze(1)).norm(dim=3)
    for row in range(2):
        sources = distances[row].argmin(1).tolist()
        assert distances[row].amin(1).max() < 1e-6
        assert sources[0] == 0 and all(earlier < t for t, earlier in enumerate(sources) if t)
        assert len(set(sources)) > 10


@with_one_model
def test_mistakes(
    corpus: Path, checkpoint: Path, language_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def changed(number: int, change: Callable[[str], str]) -> Path:
        folder = prepare(tmp_path / f"corpus{number}", "question-formation", "--no-binarise")
        path = folder / "text/gen.target"
        path.write_text(change(path.read_text()))
        return folder

    long = changed(0, lambda text: f"does {'yak ' * 50}?\n{text.partition(chr(10))[2]}")
    words = changed(1, lambda text: text.replace("?", "!", 1))
    damaged = changed(2, lambda text: f"?\n{text.partition(chr(10))[2]}")
    (tmp_path / "manifest.json").write_text('{"corpus": "transformations"}')
    for arguments, message in (
        ((checkpoint, "--data", corpus, "--split", "dev"), "has no split 'dev'; it has gen, test, train, valid"),
        ((checkpoint, "--data", checkpoint.parent), "is not a corpus of fairseq-stack prepare transformations"),
        ((checkpoint, "--data", long), "tokens; the model accepts at most 50"),
        ((checkpoint, "--data", words), "has the word '!', which the dictionary of the model lacks"),
        ((checkpoint, "--data", tmp_path), "manifest.json is not a manifest of fairseq-stack prepare transformations"),
        ((checkpoint, "--data", damaged), "gen.*, line 1: expected a pair of question-formation, as fairseq-stack"),
        ((language_model, "--data", long, "--split", "test"), "which the dictionary of the model lacks"),
        (
            (checkpoint, "--data", corpus, "--control", "memory-0"),
            "--control: expected permuted-readings or memory-D with",
        ),
    ):
        capsys.readouterr()
        evaluate("--split", "gen", *arguments, code=2)
        assert message in capsys.readouterr().err.splitlines()[-1]
    with pytest.raises(UserError, match="holds a model of transductions; expected a language or translation model"):
        require_answers(TransductionHub.__new__(TransductionHub))
    without_stacks = LanguageModelHub.__new__(LanguageModelHub)
    nn.Module.__init__(without_stacks)
    without_stacks.models = nn.ModuleList()
    for control, kind in ((PERMUTED, "stack attention in a language model"), ("memory-1", "a nondeterministic stack")):
        with pytest.raises(UserError, match=f"--control {control}: expected a model with {kind}"):
            apply_control(without_stacks, control, seed=0)
