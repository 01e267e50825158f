"""From a language model to a classifier: prompts, their parses, fairseq-train and the evaluation."""

from __future__ import annotations

import json
import random
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_stack import cli
from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.classification import ClassificationResult
from fairseq_stack.hub.interface import load
from fairseq_stack.modules import parse_all
from tests.end_to_end.fairseq_commands import SIZES, Output, rows_of, run
from tests.end_to_end.test_pushdown import last

VALUES = {"good": 4.0, "fine": 3.0, "poor": 1.5, "bad": 0.0}
SPLITS = {"train": 120, "valid": 17, "test": 11}
TRAINING = [
    *("--tokens-per-sample", 60, "--optimizer", "adam", "--lr", 0.01, "--batch-size", 10, "--num-workers", 0),
    *("--no-epoch-checkpoints", "--no-progress-bar", "--cpu", "--dropout", 0, "--compact-vocab", "--compact-vocab-unk"),
]
PARSING = [*TRAINING, *SIZES[6:], "--arch", "pushdown_transformer_lm", "--stack-layers", "2xpushdown"]
PLAIN = [*TRAINING, *SIZES[6:], "--arch", "stack_transformer_lm", "--stack-layers", "sdpa,sup-4"]
PROMPTS = ["--task", "prompt_classification", "--criterion", "classification_cross_entropy"]


@dataclass(frozen=True)
class Corpora:
    """A treebank, sentences with two labels, and pairs of sentences with values; and two models of the treebank."""

    folder: Path
    parsing: Path
    plain: Path

    @property
    def labels(self) -> Path:
        return self.folder / "labels"

    @property
    def values(self) -> Path:
        return self.folder / "values"


def sentence(rng: random.Random, word: str | None = None) -> str:
    """A tree of a sentence."""
    subject = f"(NP (DT the) (NN {rng.choice(('film', 'plot'))}))"
    return f"(S {subject} (VP (VBD was) (JJ {word or rng.choice(list(VALUES))})) (. .))"


def words(tree: str) -> str:
    return " ".join(re.findall(r" (\S+?)\)", tree)).removesuffix(" .")


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Corpora:
    """A label is the text of two tokens, or of one; it is determined by one word."""
    folder, rng = tmp_path_factory.mktemp("classification"), random.Random(0)
    sources: dict[str, list[str]] = {"trees": [], "labels": [], "values": []}
    for split, size in SPLITS.items():
        paths = {name: folder / f"{split}.{name}" for name in sources}
        prompt = "(S (X (NN Text) (: :)) (X {} (X (X (NN Good) (: :)) {})))"
        answers = ("(NN Yes)", "(X (RB Not) (RB really))")
        trees = [prompt.format(sentence(rng), rng.choice(answers)) for _ in range(size)]
        paths["trees"].write_text("".join(f"{tree}\n" for tree in trees))
        labels, values = ["sentence\tlabel"], ["a\tb\tscore"]
        for _ in range(size):
            first, second = rng.choices(list(VALUES), k=2)
            texts = [words(sentence(rng, word)) for word in (first, second)]
            labels.append(f"{texts[0]}\t{int(VALUES[first] > 2)}")
            values.append(f"{texts[0]}\t{texts[1]}\t{(VALUES[first] + VALUES[second]) / 2 + rng.gauss(0, 0.2):.2f}")
        paths["labels"].write_text("\n".join(labels) + "\n")
        paths["values"].write_text("\n".join(values) + "\n")
        for name, path in paths.items():
            sources[name] += [f"--{split}", str(path)]
    like = ["--like", str(folder / "trees"), "--penn"]
    classes = ["--template", "Text: {sentence}. Good: {label}", "--labels", "0=Not really", "1=Yes"]
    regression = ["--template", "Text: {a}. Text: {b}.", "--label-column", "score"]
    assert cli.main(["prepare", "treebank", str(folder / "trees"), *sources["trees"], "--rare-words", "keep"]) == 0
    assert cli.main(["prepare", "classification", str(folder / "labels"), *sources["labels"], *like, *classes]) == 0
    assert cli.main(["prepare", "classification", str(folder / "values"), *sources["values"], *like, *regression]) == 0
    modeling: list[Any] = ["--task", "pushdown_language_modeling", "--max-epoch", 4]
    of_trees = folder / "trees" / "data-bin"
    of_parses = ["--criterion", "pushdown_cross_entropy"]
    run("train", of_trees, *PARSING, *modeling, *of_parses, "--save-dir", folder / "parsing")
    run("train", of_trees, *PLAIN, *modeling, "--save-dir", folder / "plain")
    for name in ("labels", "values"):
        parse(folder / "parsing", folder / name)
    return Corpora(folder, folder / "parsing" / "checkpoint_best.pt", folder / "plain" / "checkpoint_best.pt")


def parse(checkpoint: Path, data: Path, *options: str) -> None:
    assert cli.main(["parse-prompts", str(checkpoint), "--data", str(data), "--beam", "3", "--cpu", *options]) == 0


def evaluate(checkpoint: Path, data: Path, *options: str) -> ClassificationResult:
    path = checkpoint.parent / "result.json"
    outputs = ["--json", str(path), "--csv", str(path.with_suffix(".csv")), "--bootstrap", "20", "--cpu"]
    assert cli.main(["evaluate-classification", str(checkpoint), "--data", str(data), *outputs, *options]) == 0
    return ClassificationResult.read(path)


def fine_tune(model: list[Any], checkpoint: Path, data: Path, metric: str, folder: Path, *options: Any) -> Output:
    best = ["--best-checkpoint-metric", metric, "--maximize-best-checkpoint-metric", "--max-epoch", 12]
    start = ["--finetune-from-model", checkpoint, "--save-dir", folder]
    return run("train", data / "data-bin", *model, *PROMPTS, *best, *start, *options)


def validate(checkpoint: Path, data: Path, split: str = "valid") -> Output:
    options = ["--path", checkpoint, "--valid-subset", split, "--batch-size", 4, "--num-workers", 0, "--cpu"]
    return run("validate", data / "data-bin", *PROMPTS[:2], *options)


def test_parses_are_of_the_prompts_alone(corpora: Corpora) -> None:
    """They are the best of the beam, and do not depend on the label, whose tokens attach to themselves."""
    text = corpora.labels / "text"
    sentences, attached, labels = (
        (text / f"valid.{suffix}").read_text().splitlines() for suffix in ("txt", "attach", "label")
    )
    hub = load(corpora.parsing)
    for line, attachments, label in zip(sentences, attached, labels, strict=True):
        tokens = line.split()
        length = len(tokens) - len(label.split())
        prompt = torch.tensor([[*map(hub.tgt_dict.index, tokens[:length])]])
        (best,) = parse_all(hub.models[0].decoder.network, prompt, beam_size=3, are_prefixes=True)
        own = list(range(length + 1, len(tokens) + 1))
        assert [int(number) for number in attachments.split()] == [*best.attachments[0].tolist(), *own]


@pytest.mark.parametrize("kind", ["parsing", "plain"])
def test_classification(kind: str, corpora: Corpora, tmp_path: Path) -> None:
    """The label is learned, and the metrics of validation are those of the evaluation, whatever the batches."""
    model = PARSING if kind == "parsing" else PLAIN
    options = ["--attachment-weight", 1] if kind == "parsing" else ["--scored-words", "label"]
    output = fine_tune(model, getattr(corpora, kind), corpora.labels, "accuracy", tmp_path, *options)
    result = evaluate(tmp_path / "checkpoint_best.pt", corpora.labels)
    assert result.classification is not None and result.regression is None
    assert result.classification.labels == ("Not really", "Yes")
    assert result.classification.accuracy.value >= 0.9
    assert ("|parses:" in result.signature) == (kind == "parsing")
    rows = rows_of(tmp_path / "result.csv")
    assert len(rows) == result.prompts == SPLITS["test"]
    for row in rows:
        scores = {label: float(row[f"log_p_{label}"]) for label in result.classification.labels}
        assert row["predicted"] == max(scores, key=lambda label: scores[label])
    right = sum(row["predicted"] == row["label"] for row in rows)
    assert result.classification.accuracy.value == pytest.approx(right / len(rows))
    of_last = evaluate(tmp_path / "checkpoint_last.pt", corpora.labels, "--split", "valid").classification
    again = validate(tmp_path / "checkpoint_last.pt", corpora.labels)
    assert of_last is not None
    for validated in (output, again):
        assert last(validated, "accuracy") == pytest.approx(100 * of_last.accuracy.value, abs=1e-4)
        assert last(validated, "f1") == pytest.approx(100 * of_last.f1.value, abs=1e-4)
        assert last(validated, "matthews") == pytest.approx(of_last.matthews.value, abs=1e-4)
    validate(tmp_path / "checkpoint_last.pt", corpora.labels, "train")  # which has no candidates
    scoring = ["--sample-break-mode", "eos", "--gen-subset", "valid", "--num-workers", 0, "--cpu"]
    path = ["--path", tmp_path / "checkpoint_last.pt", *PROMPTS[:2], *scoring]
    (score,) = [line for line in run("eval-lm", corpora.labels / "data-bin", *path).log if "Perplexity: " in line]
    assert ("each word given gold parses" in score) == (kind == "parsing")


def test_models_of_fairseq(corpora: Corpora, tmp_path: Path) -> None:
    model = ["--arch", "transformer_lm", "--decoder-layers", 1, *SIZES[6:], *TRAINING[:-2]]
    trained = run("train", corpora.labels / "data-bin", *model, *PROMPTS, "--max-epoch", 1, "--save-dir", tmp_path)
    assert 0 <= last(trained, "accuracy") <= 100


def test_labels_are_scored_after_their_prompts(corpora: Corpora, tmp_path: Path) -> None:
    """One string at a time, in Python."""
    fine_tune(PLAIN, corpora.plain, corpora.labels, "accuracy", tmp_path, "--max-epoch", 1)
    evaluate(tmp_path / "checkpoint_last.pt", corpora.labels)
    hub = load(tmp_path / "checkpoint_last.pt", corpora.labels / "data-bin")
    rows = rows_of(tmp_path / "result.csv")
    hub.task.load_dataset("test")
    longest = [len(hub.encode(f"{row['prompt']} Not really")) for row in rows]
    assert hub.task.dataset("test").sizes.tolist() == longest
    for row in rows:
        for label in ("Yes", "Not really"):
            scored = hub.score(f"{row['prompt']} {label}")["positional_scores"]
            expected = scored[-1 - len(label.split()) : -1].sum()
            assert float(row[f"log_p_{label}"]) == pytest.approx(float(expected), abs=1e-5)


@pytest.mark.parametrize("kind", ["parsing", "plain"])
def test_regression(kind: str, corpora: Corpora, tmp_path: Path) -> None:
    """The regressor is learned with the language model, and saved with it."""
    model = PARSING if kind == "parsing" else PLAIN
    output = fine_tune(model, getattr(corpora, kind), corpora.values, "pearson", tmp_path)
    result = evaluate(tmp_path / "checkpoint_last.pt", corpora.values, "--split", "valid")
    assert result.regression is not None and result.classification is None
    assert result.regression.pearson.value > 0.8 and result.regression.spearman.value > 0.7
    assert last(output, "pearson") == pytest.approx(result.regression.pearson.value, abs=1e-4)
    rows = rows_of(tmp_path / "result.csv")
    squares = [(float(row["label"]) - float(row["predicted"])) ** 2 for row in rows]
    assert last(output, "squared_error") == pytest.approx(sum(squares) / len(squares), abs=1e-3)
    again = validate(tmp_path / "checkpoint_last.pt", corpora.values)
    assert last(again, "pearson") == pytest.approx(result.regression.pearson.value, abs=1e-4)


def test_a_resumed_run_goes_on_with_its_regressor(corpora: Corpora, tmp_path: Path) -> None:
    options = ["--scored-words", "label"]
    for folder, epochs in (("whole", [3]), ("resumed", [2, 3])):
        for most in epochs:
            fine_tune(PLAIN, corpora.plain, corpora.values, "pearson", tmp_path / folder, *options, "--max-epoch", most)
    whole, resumed = (
        torch.load(tmp_path / folder / "checkpoint_last.pt", weights_only=False)["model"]
        for folder in ("whole", "resumed")
    )
    assert "regressor.weight" in whole
    assert all(torch.equal(value, resumed[name]) for name, value in whole.items())


def test_parses_elsewhere(corpora: Corpora, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The folder of the parses is that of training, unless another one is named."""
    (tmp_path / "parses").mkdir()
    parse(corpora.parsing, corpora.labels, "--attachments", str(tmp_path / "parses"))
    options = ["--attachments", tmp_path / "parses", "--max-epoch", 1]
    fine_tune(PARSING, corpora.parsing, corpora.labels, "accuracy", tmp_path / "model", *options)
    checkpoint = tmp_path / "model" / "checkpoint_best.pt"
    signature = evaluate(checkpoint, corpora.labels).signature
    (tmp_path / "parses").rename(tmp_path / "moved")
    assert evaluate(checkpoint, corpora.labels, "--attachments", str(tmp_path / "moved")).signature == signature
    assert cli.main(["evaluate-classification", str(checkpoint), "--data", str(corpora.labels), "--cpu"]) == 2
    assert "parses/test.attach is not a file: expected attachments as" in capsys.readouterr().err


def test_errors_of_training(corpora: Corpora, tmp_path: Path) -> None:
    trees = corpora.folder / "trees" / "data-bin"
    with pytest.raises(UserError, match=r"has no task\.json: expected a corpus of fairseq-stack prepare class"):
        run("train", trees, *PLAIN, *PROMPTS, "--save-dir", tmp_path)
    with pytest.raises(UserError, match="classification_cross_entropy needs labels: --task prompt_classification"):
        run("train", trees, *PLAIN, "--task", "pushdown_language_modeling", *PROMPTS[2:], "--save-dir", tmp_path)
    with pytest.raises(UserError, match="--attachment-weight needs a model that predicts attachments"):
        fine_tune(PLAIN, corpora.plain, corpora.labels, "accuracy", tmp_path, "--attachment-weight", 1)
    shutil.copytree(corpora.labels, tmp_path / "data")
    path = tmp_path / "data" / "text" / "train.label"
    for content, message in (
        ("Yes\n", r"train\.label: expected 120 lines, one for each sentence of the data, got 1"),
        ("Maybe\n" * 120, r"train\.label, line 1: expected one of Not really, Yes, got 'Maybe'"),
    ):
        path.write_text(content)
        with pytest.raises(UserError, match=message):
            fine_tune(PLAIN, corpora.plain, tmp_path / "data", "accuracy", tmp_path / "model")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("evaluate-classification {plain} --data {labels}", "{plain}: expected one model that was trained with --task"),
        ("evaluate-classification {plain} --data {labels} --split gen", "labels has no split gen; it has test, train"),
        ("parse-prompts {parsing} --data {trees}", "{trees} has no task.json: expected a corpus of fairseq-stack prep"),
        ("parse-prompts {plain} --data {labels}", "the checkpoint holds no model that parses"),
        ("parse-prompts {parsing} --data {labels} --attachments {labels}/no", "cannot write {labels}/no/test.attach"),
    ],
)
def test_errors_of_commands(command: str, message: str, corpora: Corpora, capsys: pytest.CaptureFixture[str]) -> None:
    places = {"plain": corpora.plain, "parsing": corpora.parsing, "labels": corpora.labels}
    places["trees"] = corpora.folder / "trees"
    assert cli.main(command.format(**places).split()) == 2
    assert message.format(**places) in capsys.readouterr().err


def test_a_prompt_that_is_too_long(corpora: Corpora, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The error names its file, and nothing is written."""
    shutil.copytree(corpora.labels, tmp_path / "data")
    text = tmp_path / "data" / "text"
    lines = (text / "train.txt").read_text().splitlines()
    (text / "train.txt").write_text("".join(f"{line}\n" for line in ["the " * 60 + lines[0], *lines[1:]]))
    (text / "valid.attach").unlink()
    assert cli.main(["parse-prompts", str(corpora.parsing), "--data", str(tmp_path / "data"), "--cpu"]) == 2
    assert f"error: {text}/train.txt: string 1 has " in capsys.readouterr().err
    assert not (text / "valid.attach").exists()


def test_another_task(corpora: Corpora, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fine_tune(PLAIN, corpora.plain, corpora.labels, "accuracy", tmp_path / "model", "--max-epoch", 1)
    shutil.copytree(corpora.labels, tmp_path / "data")
    task = json.loads((tmp_path / "data" / "task.json").read_text())
    (tmp_path / "data" / "task.json").write_text(json.dumps({**task, "template": "other"}))
    assert cli.main(["evaluate-classification", str(tmp_path / "model"), "--data", str(tmp_path / "data")]) == 2
    assert 'expected template "Text: {sentence}. Good: {label}", on which the model was' in capsys.readouterr().err
