"""fairseq's commands train and score language models of a text that is one stream."""

from __future__ import annotations

import math
import os
import random
import shlex
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq import checkpoint_utils

from fairseq_stack import cli
from fairseq_stack.errors import UserError
from fairseq_stack.hub.surprisals import surprisals
from fairseq_stack.tasks._carried import CarriedStates
from fairseq_stack.tasks.truncated_bptt import TASK
from tests.documents import Document
from tests.end_to_end.conftest import Corpora, trained
from tests.end_to_end.fairseq_commands import GENERATION, SIZES, TRAINING, hub_of, run
from tests.end_to_end.test_resuming import assert_same, state

BARE = ["--task", TASK, "--arch", "stack_lstm_lm", "--decoder-hidden-size", 8]
STACKS = "sup-3+strat-2+nd-2-2-3+ns-1-2"
STREAM = [
    *(*BARE, "--stack", STACKS, "--tokens-per-sample", 5, "--decoder-embed-dim", 6, "--dropout", 0.2),
    *("--recurrent-dropout", 0.1),
]
ROWS = 4
STEPS = [*TRAINING, "--batch-size", ROWS]
SCORING = ["--task", TASK, "--valid-subset", "test", "--num-workers", 0, "--cpu"]


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Binarised text that ``prepare`` writes as one line with ``<eos>`` after each sentence; there are <unk>."""
    folder = tmp_path_factory.mktemp("stream")
    draw = random.Random(1)
    for split, size in {"train": 24, "valid": 12, "test": 12}.items():
        sentences = [draw.choices(["a", "b", "c", "<unk>"], k=draw.randint(1, 6)) for _ in range(size)]
        (folder / f"ptb.{split}.txt").write_text("".join(f" {' '.join(words)} \n" for words in sentences))
    texts = [f"--{split}={folder}/ptb.{split}.txt" for split in ("train", "valid", "test")]
    command = ["prepare", "lm", str(folder / "corpus"), *texts, "--stream"]
    assert cli.main(command) == 0
    return folder / "corpus" / "data-bin"


@pytest.fixture(scope="module")
def stream_model(stream: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(stream, STREAM, tmp_path_factory, STEPS)


def words_of(data: Path, split: str) -> list[str]:
    return (data.parent / "text" / f"{split}.txt").read_text().split()


def mean_loss(path: Path, split: str, batch_size: int, **overrides: Any) -> tuple[float, int]:
    """The mean loss of a stream in nats, in double precision, and the number of tokens that were scored."""
    (model,), cfg, task = checkpoint_utils.load_model_ensemble_and_task([str(path)], overrides)
    criterion = task.build_criterion(cfg.criterion)
    task.load_dataset(split)
    batches = task.get_batch_iterator(task.dataset(split), None, batch_size).next_epoch_itr(shuffle=False)
    steps = [task.valid_step(sample, model.double(), criterion) for sample in batches]
    num_tokens = sum(log["ntokens"] for *_, log in steps)
    return sum(float(loss) for loss, *_ in steps) / num_tokens, num_tokens


@pytest.mark.parametrize("batch_size", [1, ROWS])
def test_the_length_of_a_segment_changes_no_score(stream: Path, stream_model: Path, batch_size: int) -> None:
    """Each word of the text is scored once, and the ``</s>`` at the end of the line is not."""
    expected, num_tokens = mean_loss(stream_model, "test", batch_size, tokens_per_sample=1000)
    assert num_tokens == len(words_of(stream, "test")) < 1000
    for length in (1, 5, 35):
        assert mean_loss(stream_model, "test", batch_size, tokens_per_sample=length) == (
            pytest.approx(expected, rel=1e-9),
            num_tokens,
        )


def test_one_row_has_the_score_of_one_pass(stream: Path, stream_model: Path) -> None:
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([str(stream_model)])
    tokens = [task.dictionary.index(word) for word in ["<eos>", *words_of(stream, "test")]]
    hidden = model.double().eval().decoder.lstm(model.decoder.embed_tokens(torch.tensor([tokens[:-1]])))[0]
    log_probabilities = model.decoder.output_layer(hidden)[0].log_softmax(-1)
    expected = -log_probabilities[torch.arange(len(tokens) - 1), tokens[1:]].mean().item()
    assert mean_loss(stream_model, "test", 1)[0] == pytest.approx(expected, rel=1e-9)
    printed = run("validate", stream, "--path", stream_model, *SCORING, "--batch-size", 1).validation_losses()
    assert printed == pytest.approx([expected / math.log(2)], abs=0.0006)


@pytest.mark.parametrize("num_updates", [6, 8], ids=["between-epochs", "in-second-epoch"])
def test_resumes_exactly(stream: Path, stream_model: Path, tmp_path: Path, num_updates: int) -> None:
    command = [stream, *STREAM, *STEPS, "--save-dir", tmp_path]
    run("train", *command, "--max-update", num_updates)
    place = torch.load(tmp_path / stream_model.name, weights_only=True)["extra_state"]
    assert place["train_iterator"]["iterations_in_epoch"] == num_updates % 6
    run("train", *command)
    assert_same(state(tmp_path), state(stream_model.parent))


def test_ways_of_training_resume_exactly(stream: Path, tmp_path: Path) -> None:
    ways = ["--update-freq", 4, "--validate-interval-updates", 1, "--memory-efficient-fp16", "--num-workers", 1]
    for folder, limits in (("whole", [[]]), ("resumed", [["--max-update", 1], []])):
        for limit in limits:
            run("train", stream, *STREAM, *STEPS, *ways, *limit, "--save-dir", tmp_path / folder)
    assert_same(state(tmp_path / "resumed"), state(tmp_path / "whole"))


def test_validation_does_not_disturb_training(stream: Path, stream_model: Path, tmp_path: Path) -> None:
    options = ["--validate-interval-updates", 2, "--batch-size-valid", 1]
    run("train", stream, *STREAM, *STEPS, *options, "--save-dir", tmp_path)
    assert_same(state(tmp_path)["parameters"], state(stream_model.parent)["parameters"])


@pytest.mark.parametrize(("lines", "options"), [
    (False, ["--compact-vocab", "--compact-vocab-unk", "--decoder-embed-dim", 5]),
    (True, ["--compact-vocab", "--compact-vocab-unk", "--share-decoder-input-output-embed"]),
    (True, []),
], ids=["stream-embedded", "lines-shared", "lines-one-hot"])  # fmt: skip
def test_ends_of_sentences_are_read(
    corpora: Corpora, stream: Path, tmp_path: Path, lines: bool, options: list[Any]
) -> None:
    """They are the word <eos>, which is like others, or, in a text of lines, ``</s>``."""
    data = corpora.language_modeling if lines else stream
    command = [*BARE, *options, "--stack", "sup-3", "--tokens-per-sample", 5, *STEPS, "--max-epoch", 1]
    run("train", data, *command, "--save-dir", tmp_path)
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([str(tmp_path / "checkpoint_last.pt")])
    end = task.dictionary.eos() if lines else task.dictionary.index("<eos>")
    read = [model(torch.tensor([[token]]), state=model.initial_state(1))[0] for token in (end, task.dictionary.pad())]
    assert not torch.equal(*read)
    check_scores_of_sentences(tmp_path, end)
    with pytest.raises(UserError, match=f"expected --task {TASK} here"):  # whether the parameters fit or not
        run("eval-lm", data, "--path", tmp_path / "checkpoint_last.pt", "--gen-subset", "test", "--cpu")


def check_scores_of_sentences(folder: Path, end: int) -> None:
    """Each sentence follows the end of another, as in the stream, and may be longer than a segment."""
    hub = hub_of(folder)
    (model,), text = hub.models, "a b c a b c"
    tokens = torch.tensor([[end, *map(hub.tgt_dict.index, text.split()), end]])
    logits, _ = model(tokens[:, :-1], state=model.initial_state(1))
    expected = logits.log_softmax(2).gather(2, tokens[:, 1:, None]).flatten().tolist()
    assert hub.score([text, "a"])[0]["positional_scores"].tolist() == pytest.approx(expected, abs=1e-6)
    ((*words, last),) = surprisals(hub, [text])
    assert [-word.surprisal for word in (*words, last)] == pytest.approx(expected, abs=1e-6)
    assert last.text == hub.tgt_dict[end]
    state: dict[str, Any] = {}
    steps = [model.decoder(tokens[:, : t + 1], incremental_state=state)[0] for t in range(len(words) + 1)]
    assert torch.cat(steps, 1).flatten().tolist() == pytest.approx(logits.flatten().tolist(), abs=1e-6)


def test_the_commands_of_the_documentation(stream: Path, tmp_path: Path) -> None:
    (block,) = (block for block in Document("docs/data.md").blocks("bash") if TASK in block)
    text = block.replace('--user-dir "$(fairseq-stack user-dir)"', "").replace("\\\n", " ")
    replaced = {"data/ptb-stream/data-bin": str(stream), "checkpoints/ptb-stream": str(tmp_path)}
    for old, new in replaced.items():
        text = text.replace(old, new)
    train, validate = (shlex.split(line)[1:] for line in text.splitlines())
    run("train", *train, "--max-epoch", 1, "--num-workers", 0, "--cpu")
    scored = run("validate", *validate, "--num-workers", 0, "--cpu")
    assert len(scored.validation_losses()) == 1


def refused(stream: Path, folder: Path, *options: Any) -> str:
    """What fairseq-train says about options that it refuses, added to those of a model or in their place."""
    model = [] if "--arch" in options else STREAM
    with pytest.raises(UserError) as error:
        run("train", stream, *model, *STEPS, *options, "--save-dir", folder)
    return str(error.value)


@pytest.mark.parametrize(("options", "message"), [
    (["--task", TASK, "--arch", "stack_transformer_lm", *SIZES[6:], "--stack-layers", "sup-3"], "no such state"),
    (["--max-tokens", 100], "expected --batch-size, the number of rows of a stream, and not --max-tokens"),
    (["--sample-break-mode", "eos"], "--sample-break-mode: --task stack_truncated_bptt reads a text as one stream"),
    (["--add-bos-token"], "--add-bos-token: --task stack_truncated_bptt reads a text as one stream"),
    (["--tokens-per-sample", 0], "--tokens-per-sample: expected at least 1, got 0"),
], ids=["transformer", "tokens", "break-mode", "bos", "length"])  # fmt: skip
def test_mistakes(stream: Path, tmp_path: Path, options: list[Any], message: str) -> None:
    assert message in refused(stream, tmp_path, *options)


def test_another_division_within_an_epoch(stream: Path, tmp_path: Path) -> None:
    run("train", stream, *STREAM, *STEPS, "--max-update", 2, "--save-dir", tmp_path)
    assert "expected segments 6, --batch-size 4, --tokens-per-sample 5, got segments 8, --batch-size 3, " in refused(
        stream, tmp_path, "--batch-size", 3
    )
    run("train", stream, *STREAM, *STEPS, "--batch-size", 3, "--reset-dataloader", "--save-dir", tmp_path)
    assert state(tmp_path)["num_updates"] == 2 + 2 * 8


def test_a_checkpoint_without_the_state(stream: Path, tmp_path: Path) -> None:
    run("train", stream, *STREAM, *STEPS, "--max-update", 2, "--save-dir", tmp_path)
    path = tmp_path / "checkpoint_last.pt"
    checkpoint = torch.load(path, weights_only=True)
    del checkpoint["extra_state"]["StackTruncatedBPTTTask"]
    torch.save(checkpoint, path)
    assert "the state before segment 3 is missing" in refused(stream, tmp_path)


def test_several_processes(stream: Path, stream_model: Path) -> None:
    _, _, task = checkpoint_utils.load_model_ensemble_and_task([str(stream_model)])
    task.load_dataset("valid")
    with pytest.raises(UserError, match="expected one process, got 2"):
        task.get_batch_iterator(task.dataset("valid"), None, 2, num_shards=2)
    with pytest.raises(UserError, match="--skip-remainder-batch: --task"):
        task.get_batch_iterator(task.dataset("valid"), None, 2, skip_remainder_batch=True)


def test_what_carries_no_state_is_refused(stream: Path, stream_model: Path) -> None:
    for options in (["--task", TASK], ["--sample-break-mode", "eos"]):
        with pytest.raises(UserError, match=f"fairseq-validate --task {TASK} --batch-size 1"):
            run("eval-lm", stream, "--path", stream_model, "--gen-subset", "test", "--cpu", *options)
    with pytest.raises(UserError, match=r"^fairseq-generate does not carry the state of a stream"):
        run("generate", stream, "--task", TASK, "--path", stream_model, *GENERATION, "--batch-size", 2)


def test_continues_a_prefix(stream: Path, stream_model: Path) -> None:
    options = ["--path", stream_model, *GENERATION, "--batch-size", 1]
    answered = run("interactive", stream, "--task", TASK, *options, stdin="a b\n")
    assert answered.hypotheses()[0].startswith("a b")
    with pytest.raises(UserError, match=f"expected --task {TASK} here"):
        run("interactive", stream, "--task", "language_modeling", *options, stdin="a b\n")


@pytest.mark.hostile
@pytest.mark.parametrize("stack", ["none", "nd-2-2-3@35"])
def test_a_long_stream_trains_in_constant_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stack: str) -> None:
    """What a process holds after 10^5 tokens, in one row, is what it held after a tenth of them, but for noise."""
    draw = random.Random(1)
    for split, size in (("train", 100_000), ("valid", 100)):
        (tmp_path / split).write_text(" ".join(draw.choices("abcd", k=size)) + "\n")
    options = ["--trainpref", tmp_path / "train", "--validpref", tmp_path / "valid", "--destdir", tmp_path / "data"]
    run("preprocess", "--only-source", *options)
    resident = []

    def keep(self: CarriedStates, segment: int, state: Any) -> None:
        resident.append(int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
        kept(self, segment, state)

    kept = CarriedStates.keep
    monkeypatch.setattr(CarriedStates, "keep", keep)
    command = [*BARE, "--stack", stack, *TRAINING, "--batch-size", 1, "--max-epoch", 1, "--disable-validation"]
    run("train", tmp_path / "data", *command, "--save-dir", tmp_path / "model")
    segments = len(resident)
    assert segments == -(-100_001 // 35)
    assert max(resident) - resident[segments // 10] < 10_000_000
