"""fairseq's commands train and score language models of a text that is one stream."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.tasks import FairseqTask

from fairseq_stack import cli
from fairseq_stack.errors import UserError
from fairseq_stack.tasks.truncated_bptt import TASK
from tests.end_to_end.conftest import Corpora
from tests.end_to_end.running import BARE_LANGUAGE_MODEL, SENTENCES, SIZES, TRAINING, run
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
    for split, size in {"train": 24, "valid": 6, "test": 9}.items():
        sentences = [draw.choices(["a", "b", "c", "<unk>"], k=draw.randint(1, 6)) for _ in range(size)]
        (folder / f"ptb.{split}.txt").write_text("".join(f" {' '.join(words)} \n" for words in sentences))
    command = ["prepare", "ptb", str(folder / "corpus"), "--raw", str(folder), "--mikolov", "stream"]
    assert cli.main(command) == 0
    return folder / "corpus" / "data-bin"


@pytest.fixture(scope="module")
def stream_model(stream: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stream_model")
    run("train", stream, *STREAM, *STEPS, "--save-dir", folder)
    return folder / "checkpoint_last.pt"


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


def test_train_and_score(stream: Path, stream_model: Path, tmp_path: Path) -> None:
    trained = run("train", stream, *STREAM, *STEPS, "--save-dir", tmp_path)
    assert trained.training_losses()[1] < trained.training_losses()[0]
    options = ["--path", tmp_path / "checkpoint_last.pt", *SCORING, "--valid-subset", "valid"]
    scored = run("validate", stream, *options, "--batch-size", ROWS)
    assert scored.validation_losses() == trained.validation_losses()[-1:]
