"""The curves of training runs, from the logs of fairseq-train."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.training_log import read_training_curve, read_valid_bound

from .test_training_log import HEAD, validation


def entry(**figures: object) -> str:
    return json.dumps(figures) + "\n"


def progress(updates: int, epochs: float, rate: float) -> str:
    return entry(epoch=1, update=epochs, loss="1", num_updates=str(updates), lr=str(rate))


def end_of_epoch(epoch: int, updates: int, rate: float) -> str:
    return entry(epoch=epoch, train_loss="1", train_num_updates=str(updates), train_lr=str(rate), train_train_wall="1")


def write(folder: Path, text: str) -> Path:
    path = folder / "train.log"
    path.write_text(text, encoding="utf-8")
    return path


def test_another_figure_is_as_it_stands_and_runs_are_still_compared_by_the_loss(tmp_path: Path) -> None:
    bleus = {50: (2, 20.5), 100: (3, 21), 60: (4, 19)}
    text = HEAD + "".join(validation(updates, loss=loss, bleu=bleu) for updates, (loss, bleu) in bleus.items())
    curve = read_training_curve(write(tmp_path, text), "bleu")
    assert list(curve.values.items()) == [(50, 20.5), (60, 19.0), (100, 21.0)]
    assert curve.least_loss == 2 * math.log(2)


@pytest.mark.parametrize("metric", [None, "ppl"])
def test_a_run_in_which_no_validation_has_a_number(tmp_path: Path, metric: str | None) -> None:
    log = write(tmp_path, HEAD + validation(50, loss="nan", ppl="nan") + validation(100, loss="inf", ppl="inf"))
    with pytest.raises(UserError, match=f"valid_{metric or 'loss'} is not a finite number in any validation"):
        read_training_curve(log, metric)


@pytest.mark.parametrize(
    ("text", "updates"),
    [
        (progress(100, 0.498, 0.1) + end_of_epoch(1, 200, 0.1) + progress(300, 1.5, 0.1), 200),
        (end_of_epoch(1, 150, 0.1) + end_of_epoch(2, 200, 0.1), 150),
        (entry(epoch=1, update=0, num_updates="0") + entry(train_num_updates="100"), None),
        ("", None),
    ],
    ids=["progress", "the-last-epoch-ended-early", "no-epoch", "nothing"],
)
def test_updates_in_an_epoch(tmp_path: Path, text: str, updates: float | None) -> None:
    assert read_training_curve(write(tmp_path, HEAD + validation(50, loss=2) + text)).updates_in_epoch == updates


BOUND = '{"valid": {"nats_per_token_with_eos": 0.5, "nats_per_token_without_eos": 0.75}}'


def write_bound(corpus: Path) -> None:
    corpus.mkdir(parents=True)
    (corpus / "lower_bound.json").write_text(BOUND)


@pytest.mark.parametrize("folder", ["corpus", "it's"])
def test_the_bound_is_beside_the_data_that_the_log_names(tmp_path: Path, folder: str) -> None:
    write_bound(tmp_path / folder)
    log = write(tmp_path, f"{{'task': {{'_name': 'x', 'data': {str(tmp_path / folder / 'data-bin')!r}, 'seed': 1}}}}\n")
    assert read_valid_bound(log) == 0.5


def test_the_folder_of_a_relative_path_is_above_the_log(tmp_path: Path) -> None:
    """As in a workflow whose commands run in the folder of its results."""
    write_bound(tmp_path / "dyck" / "corpus")
    run = tmp_path / "dyck" / "seed-1" / "tf"
    run.mkdir(parents=True)
    assert read_valid_bound(write(run, "'data': 'dyck/corpus/data-bin'\n")) == 0.5


@pytest.mark.parametrize(("option", "bound"), [("True", 0.75), ("False", 0.5)])
def test_the_bound_counts_the_ends_of_strings_as_training_does(tmp_path: Path, option: str, bound: float) -> None:
    write_bound(tmp_path / "corpus")
    earlier = "{'data': 'other/data-bin', 'without_eos': True}"
    log = write(tmp_path, f"{earlier}\n{{'data': '{tmp_path}/corpus/data-bin', 'without_eos': {option}}}\n")
    assert read_valid_bound(log) == bound


def test_a_run_without_a_bound(tmp_path: Path) -> None:
    log = write(tmp_path, "'data': 'corpus/data-bin'\n")
    with pytest.raises(UserError) as caught:
        read_valid_bound(log)
    assert str(caught.value) == f"{log}: the data that it names, corpus/data-bin, has no lower_bound.json next to it"
    write_bound(tmp_path / "corpus")
    for text, problem in (("{}", r"KeyError\('valid'\)"), (BOUND.replace("0.5", "NaN"), r".*the bound is nan")):
        (tmp_path / "corpus" / "lower_bound.json").write_text(text)
        with pytest.raises(UserError, match=rf"corpus/lower_bound\.json is not a lower bound of .*: {problem}"):
            read_valid_bound(log)
    with pytest.raises(UserError, match="does not name its data"):
        read_valid_bound(write(tmp_path, HEAD))
