"""Reading the log of fairseq-train."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.training_log import TrainingLog, Validation, read_training_log

HEAD = "{'_name': None, 'common': 1}\nnum. shared model params: 42,979 (num. trained: 42,979)\n"


def validation(updates: int, **figures: object) -> str:
    entries = "".join(f', "valid_{name}": "{value}"' for name, value in figures.items())
    return f'begin validation on "valid" subset\n{{"epoch": 1{entries}, "valid_num_updates": "{updates}"}}\n'


def end_of_epoch(epoch: int, seconds: int) -> str:
    return f'{{"epoch": {epoch}, "train_loss": "1.2", "train_train_wall": "{seconds}", "train_wall": "99"}}\n'


def read(folder: Path, text: str) -> TrainingLog:
    path = folder / "train.log"
    path.write_text(text, encoding="utf-8")
    return read_training_log(path)


def test_a_whole_log(tmp_path: Path) -> None:
    text = HEAD + validation(50, loss="2.5") + end_of_epoch(1, 20) + validation(100, loss="2") + end_of_epoch(2, 5)
    log = read(tmp_path, text)
    assert log.parameters == 42_979
    assert log.seconds == 25
    assert log.validations == (Validation(50, 2.5 * math.log(2)), Validation(100, 2 * math.log(2)))
    assert log.updates == 100


def test_label_smoothing_is_left_out(tmp_path: Path) -> None:
    log = read(tmp_path, HEAD + validation(50, loss="2.5", nll_loss="1.5"))
    assert log.best.loss == pytest.approx(1.5 * math.log(2))


@pytest.mark.parametrize(
    ("losses", "updates", "least"),
    [("3 1 1 2", 20, 1), ("nan 3 2 nan", 30, 2), ("nan inf", 20, math.inf), ("nan", 10, math.inf)],
)
def test_the_best_is_the_first_of_the_least(tmp_path: Path, losses: str, updates: int, least: float) -> None:
    """A loss that is not a number is not the best."""
    text = "".join(validation(10 * number, loss=loss) for number, loss in enumerate(losses.split(), start=1))
    log = read(tmp_path, HEAD + text)
    assert (log.best.updates, log.least_loss) == (updates, least * math.log(2))


def test_what_was_done_twice_counts_once(tmp_path: Path) -> None:
    first = HEAD + validation(50, loss="3") + validation(100, loss="2") + end_of_epoch(1, 20)
    resumed = HEAD + validation(100, loss="1") + end_of_epoch(1, 30) + validation(150, loss="0.5")
    log = read(tmp_path, first + resumed)
    assert [(v.updates, round(v.loss / math.log(2), 6)) for v in log.validations] == [(50, 3), (100, 1), (150, 0.5)]
    assert log.seconds == 30


def test_a_run_that_begins_again_in_the_same_log(tmp_path: Path) -> None:
    beginning = HEAD + "| INFO | fairseq.trainer | No existing checkpoint found checkpoints/checkpoint_last.pt\n"
    first = beginning + validation(50, loss="1") + validation(300, loss="1") + end_of_epoch(1, 20)
    second = beginning.replace("42,979", "50,000") + validation(50, loss="3") + validation(100, loss="2")
    log = read(tmp_path, first + second)
    assert [(v.updates, round(v.loss / math.log(2), 6)) for v in log.validations] == [(50, 3), (100, 2)]
    assert (log.parameters, log.epochs) == (50_000, 0)


def test_half_a_line(tmp_path: Path) -> None:
    """A process was killed, or the disk was full, while it wrote; the next one does the same again."""
    resumed = HEAD + validation(100, loss="1")
    for length in range(1, len(validation(100, loss="2")) - 1):
        log = read(tmp_path, HEAD + validation(50, loss="3") + validation(100, loss="2")[:length] + resumed)
        assert [v.updates for v in log.validations] == [50, 100]
        assert log.best.loss == math.log(2)


@pytest.mark.parametrize(
    ("text", "missing"),
    [(HEAD, "validation"), (validation(50, loss="1"), "number of parameters"), ("", "number of parameters")],
    ids=["no-validation", "no-parameters", "empty"],
)
def test_a_log_that_lacks_something(tmp_path: Path, text: str, missing: str) -> None:
    with pytest.raises(UserError, match=rf"train\.log: this log has no {missing}"):
        read(tmp_path, text)
