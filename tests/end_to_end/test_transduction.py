"""fairseq's commands train, resume, validate and use models of transductions; fairseq-stack evaluates them."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_stack import cli
from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.transduction import TransductionResult
from fairseq_stack.hub.interface import load
from fairseq_stack.hub.transductions import load_split, require_transductions
from fairseq_stack.models import BufferedNeuralStackModel, NeuralStackModel
from fairseq_stack.models.vocabulary import FINGERPRINT
from tests.end_to_end.fairseq_commands import Output, rows_of, run

TASK = ["--task", "stack_transduction"]
TRAINING = [
    *(*TASK, "--criterion", "transduction", "--optimizer", "torch_adam", "--weight-decay", 0.01, "--lr", 0.01),
    *("--batch-size", 10, "--max-epoch", 2, "--best-checkpoint-metric", "accuracy"),
    *("--maximize-best-checkpoint-metric", "--no-epoch-checkpoints", "--no-progress-bar", "--num-workers", 0, "--cpu"),
]
MODELS: dict[str, list[Any]] = {
    "linear": ["--arch", "neural_stack_linear_2018"],
    "lstm-none": ["--arch", "neural_stack_lstm_none_2018", "--reduction", "sum"],
    "queue": ["--arch", "neural_stack", "--controller", "gru", "--memory", "queue", "--pushed", "input"],
    "buffered": ["--arch", "neural_stack_buffered_linear_2018", "--output-reading", "read-first"],
    "tagger": ["--arch", "stack_tagger_transformer", "--causal", "--stack-layers", "sdpa,nd-2-2-3"],
    "tagger-lstm": ["--arch", "stack_tagger_lstm", "--stack", "sup-3"],
}
GENERATION = ["--batch-size", 7, "--num-workers", 0, "--no-progress-bar", "--cpu"]


def prepare(folder: Path, task: str, *options: Any) -> Path:
    assert cli.main(["prepare", "transduction", str(folder), "--task", task, *map(str, options)]) == 0
    return folder


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepare(tmp_path_factory.mktemp("transductions") / "reversal", "reversal", "--limit", 30)


@pytest.fixture(scope="module", params=MODELS)
def checkpoint(request: pytest.FixtureRequest, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    run("train", corpus / "data-bin", *MODELS[request.param], *TRAINING, "--save-dir", folder)
    return folder / "checkpoint_last.pt"


with_two_models = pytest.mark.parametrize("checkpoint", ["linear", "buffered"], indirect=True)


def evaluate(*arguments: Any, code: int = 0) -> None:
    assert cli.main(["evaluate-transduction", *map(str, arguments)]) == code


def result_of(path: Path, *arguments: Any) -> TransductionResult:
    evaluate(*arguments, "--bootstrap", 20, "--cpu", "--json", path)
    return TransductionResult.read(path)


def accuracies(log: list[str]) -> list[float]:
    return [float(number) for number in re.findall(r"subset \| .*accuracy (\S+)", "\n".join(log))]


def test_validation_evaluation_and_generation_agree(corpus: Path, checkpoint: Path, tmp_path: Path) -> None:
    result = result_of(tmp_path / "result.json", checkpoint, "--data", corpus, "--split", "valid")
    validated = run("validate", corpus / "data-bin", *TASK, "--path", checkpoint, "--batch-size", 4, "--cpu")
    assert accuracies([*validated.log, validated.printed]) == pytest.approx(
        [100 * result.overall.accuracy.value], abs=0.0006
    )

    generated = run("generate", corpus / "data-bin", *TASK, "--path", checkpoint, "--gen-subset", "valid", *GENERATION)
    lines: dict[str, dict[int, list[str]]] = {"S": {}, "T": {}, "H": {}}
    for line in generated.printed.splitlines():
        output = re.fullmatch(r"([STH])-(\d+)\t(?:\S+\t)?(\S+(?: \S+)*)", line)
        if output is not None:
            lines[output[1]][int(output[2])] = output[3].split()
    correct = scored = whole = 0
    for side, name in (("S", "input"), ("T", "target")):
        text = (corpus / "text" / f"valid.{name}").read_text().splitlines()
        assert lines[side] == {number: line.split() for number, line in enumerate(text)}
    for number, target in lines["T"].items():
        assert len(lines["H"][number]) == len(target)
        rights = [ours == theirs for ours, theirs in zip(lines["H"][number], target, strict=True) if theirs != "2"]
        correct, scored, whole = correct + sum(rights), scored + len(rights), whole + all(rights)
        unscored = {ours for ours, theirs in zip(lines["H"][number], target, strict=True) if theirs == "2"}
        assert unscored == {"2"}, "blanks where nothing is scored"
    assert generated.printed.splitlines()[-1] == (
        f"Generate valid with beam=5: accuracy {correct / scored:.2%}, {correct} of {scored} scored symbols"
    )
    assert (result.overall.correct, result.overall.scored) == (correct, scored)
    assert result.overall.whole_strings.value == pytest.approx(whole / 30)


@pytest.mark.parametrize("checkpoint", ["tagger", "tagger-lstm"], indirect=True)
def test_stacks_of_taggers_are_inspected(checkpoint: Path, tmp_path: Path) -> None:
    for name in ("stacks.json", "stacks.png"):
        assert cli.main(["inspect", str(checkpoint), "--text", "0 1 2 2", "--output", str(tmp_path / name)]) == 0
    (stack,) = json.loads((tmp_path / "stacks.json").read_text())
    assert stack["inputs"] == ["0", "1", "2", "2"]
    assert re.fullmatch(r"encoder\.network\.(layers\.1|lstm\.stacks\.0)", stack["layer"])


@pytest.mark.parametrize("checkpoint", ["tagger"], indirect=True)
def test_strings_that_are_too_long(corpus: Path, checkpoint: Path) -> None:
    hub = require_transductions(load(checkpoint, corpus / "data-bin", max_target_positions=5))
    with pytest.raises(UserError, match=r"sentence 1 has \d+ tokens; the model accepts at most 5"):
        load_split(hub, "test")


@with_two_models
def test_resuming(corpus: Path, checkpoint: Path, tmp_path: Path) -> None:
    """Training in two parts, the first of which ends within an epoch, is training without interruption."""
    name = next(name for name in MODELS if checkpoint.parent.name.startswith(name))
    for updates in (["--max-update", 4], []):
        run("train", corpus / "data-bin", *MODELS[name], *TRAINING, *updates, "--save-dir", tmp_path / "parts")
    parts, whole = (
        torch.load(path, weights_only=True)["model"] for path in (tmp_path / "parts" / checkpoint.name, checkpoint)
    )
    assert parts.keys() == whole.keys() and f"encoder.{FINGERPRINT}" in whole
    assert all(torch.equal(parts[key], whole[key]) for key in whole)


def interact(checkpoint: Path, sentences: list[str], *options: Any) -> Output:
    command = [checkpoint.parent, *TASK, "--path", checkpoint, "--cpu", *options]
    return run("interactive", *command, "--source-lang", "input", "--target-lang", "target", stdin="\n".join(sentences))


@with_two_models
def test_python_and_interactive(corpus: Path, checkpoint: Path, tmp_path: Path) -> None:
    """The folder of the checkpoint is all that is needed: it has the dictionaries and task.json."""
    kind = BufferedNeuralStackModel if "buffered" in str(checkpoint) else NeuralStackModel
    hub = kind.from_pretrained(checkpoint)
    sentences = ["0 1 1 2 2 2", "1", "0 0 2 2"]
    outputs = hub.translate(sentences)
    assert [len(output.split()) for output in outputs] == [6, 1, 4]
    assert outputs[0].startswith("2 2 2 ") and outputs[1] == "2", "blanks while the string is read"
    assert outputs == [hub.translate(sentence) for sentence in sentences]
    assert interact(checkpoint, sentences).hypotheses() == dict(enumerate(outputs))
    with pytest.raises(UserError, match="string 1: the input has a symbol that the dictionary lacks"):
        hub.translate("0 x")


@pytest.mark.parametrize("checkpoint", ["linear"], indirect=True)
def test_table_and_json(corpus: Path, checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = result_of(tmp_path / "result.json", checkpoint, "--data", corpus, "--csv", tmp_path / "lengths.csv")
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1] == result.signature
    assert "|score:0,1|bootstrap:20|confidence:0.95|seed:0|" in result.signature
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in printed if line.startswith("|")]
    assert [row[0] for row in rows[2:]] == [*(str(row.length) for row in result.by_length), "all"]
    overall = result.overall
    assert rows[-1][:5] == [
        "all", "30", f"{overall.scored}", f"{overall.correct}", f"{100 * overall.accuracy.value:.2f} %"
    ]  # fmt: skip
    assert overall.accuracy.low <= overall.correct / overall.scored <= overall.accuracy.high
    for name in ("strings", "scored", "correct"):
        assert sum(getattr(row, name) for row in result.by_length) == getattr(overall, name)
    assert all(row.scored == row.strings * row.length // 2 for row in result.by_length)  # w #^n: half are scored
    assert [(int(row["length"]), int(row["correct"])) for row in rows_of(tmp_path / "lengths.csv")] == [
        (row.length, row.correct) for row in result.by_length
    ]
    again = result_of(tmp_path / "result.json", checkpoint, "--data", corpus / "data-bin", "--batch-size", 3)
    assert again == result


@pytest.mark.parametrize("checkpoint", ["linear"], indirect=True)
def test_mistakes(
    corpus: Path, checkpoint: Path, language_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = prepare(tmp_path / "other", "parenthesis", "--limit", 2)
    unscored = prepare(tmp_path / "unscored", "xor", "--limit", 2)
    content = json.loads((unscored / "task.json").read_text())
    (unscored / "task.json").write_text(json.dumps({**content, "scored": ["2"]}))
    alone = shutil.copy(checkpoint, tmp_path / "alone.pt")  # without a task.json to compare with
    for arguments, message in (
        ((checkpoint, "--data", corpus, "--split", "dev"), "has no split dev"),
        ((checkpoint, "--data", other), "cannot be loaded with the data of"),
        ((alone, "--data", unscored), "test: no target has one of the scored words 2"),
        ((language_model, "--data", language_model.parent), "the checkpoint holds no model of transductions"),
    ):
        capsys.readouterr()
        evaluate(*arguments, code=2)
        assert message in capsys.readouterr().err.splitlines()[-1]
    generate = [corpus / "data-bin", *TASK, "--path", checkpoint, *GENERATION]
    with pytest.raises(UserError, match=r"^--task stack_transduction: expected --criterion transduction, or one d"):
        run("train", corpus / "data-bin", *TASK, "--arch", "neural_stack", "--batch-size", 2, "--save-dir", tmp_path)
    for option in (["--score-reference"], ["--prefix-size", 2], ["--nbest", 2], ["--sampling", "--beam", 1]):
        with pytest.raises(UserError, match=f"^{option[0]}: --task stack_transduction writes all symbols at once"):
            run("generate", *generate, *option)


@pytest.mark.parametrize("checkpoint", ["buffered"], indirect=True)
def test_data_of_another_task(
    corpus: Path, checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tasks may share a dictionary. Other sizes and lengths are no other task."""
    copy = prepare(tmp_path / "copy", "copy", "--limit", 5)
    changed = shutil.copytree(corpus, tmp_path / "changed")
    (changed / "task.json").write_text((corpus / "task.json").read_text().replace('"blank": "2"', '"blank": "1"'))
    for data, problem in ((copy, 'expected task "reversal", .* got "copy"'), (changed, 'blank "2", .* got "1"')):
        expected = rf"{data / 'task.json'}: .*{problem}$"
        evaluate(checkpoint, "--data", data, "--cpu", code=2)
        assert re.search(expected, capsys.readouterr().err.splitlines()[-1])
        for command in ("validate", "generate"):
            with pytest.raises(UserError, match=expected):
                run(command, data / "data-bin", *TASK, "--path", checkpoint, *GENERATION)
    long = prepare(tmp_path / "long", "reversal", "--limit", 5, "--test-set", "drawn", "--test-seed", 3)
    evaluate(checkpoint, "--data", long, "--cpu")


@with_two_models
def test_inspect(checkpoint: Path, tmp_path: Path) -> None:
    hub = load(checkpoint)
    assert cli.main(["inspect", str(checkpoint), "--text", "0 1 1 2 2 2", "--output", str(tmp_path / "run.json")]) == 0
    record = json.loads((tmp_path / "run.json").read_text())
    is_buffered, output = "buffered" in str(checkpoint), hub.translate("0 1 1 2 2 2").split()
    length = 48 if is_buffered else 6  # padded to the greatest length
    assert record["inputs"] == ["0", "1", "1", *["2"] * (length - 3)]
    assert record["outputs"] == [*output, *["2"] * (length - 6)]
    network = hub.models[0].encoder.network
    state, total = network.initial_state(1), 0.0
    for step in range(length):
        if is_buffered:
            assert record["buffers"]["input_positions"][step] == pytest.approx(total, abs=1e-5)
            total += record["buffers"]["input_pops"][step]
        else:
            x = hub.models[0].encoder.inputs(torch.tensor([4 + int(record["inputs"][step])]))
            computed, state = network.step(x, state)
            assert (record["pops"][step], record["pushes"][step]) == pytest.approx(
                (computed.pop.item(), computed.push.item()), abs=1e-5
            )
            assert record["readings"][step] == pytest.approx(computed.reading[0].tolist(), abs=1e-5)
    assert (record["buffers"] is not None) == is_buffered
    assert not is_buffered or record["buffers"]["output_positions"][-1] == pytest.approx(
        sum(record["buffers"]["output_pushes"]), abs=1e-4
    )


def test_a_tagger_learns(tmp_path: Path) -> None:
    """In 1,000 updates, on strings of 1 to 10 symbols."""
    lengths = ["--max-length", 10, "--test-min-length", 1, "--test-max-length", 10]
    sizes = ["--train-size", 4000, "--valid-size", 100, "--test-size", 100]
    data = prepare(tmp_path / "data", "even_pairs", *sizes, *lengths)
    model = ["--arch", "stack_tagger_lstm", "--decoder-hidden-size", 20, "--lr", 0.02]
    options = ["--optimizer", "adam", "--batch-size", 40, "--max-epoch", 10, *model, "--no-save"]
    trained = run("train", data / "data-bin", *TRAINING, *options, "--save-dir", tmp_path)
    assert accuracies(trained.log)[-1] > 95
