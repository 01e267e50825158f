"""The batches of a formal language: their strings, the same ones in each epoch on demand, and what is scored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fairseq.data.iterators import EpochBatchIterator

from fairseq_stack.errors import UserError
from fairseq_stack.tasks.stack_language_modeling import StackLanguageModelingConfig, StackLanguageModelingTask
from fairseq_stack_preprocess.cfl.language_corpus import Options, prepare

BATCH_SIZE = 5
# The smaller batch at the end has a length of its own.
CORPUS = Options(
    task="dyck",
    min_length=4,
    max_length=20,
    test_min_length=4,
    test_max_length=6,
    test_per_length=2,
    train_size=48,
    valid_size=10,
    batch_size=BATCH_SIZE,
    seed=1,
)
Batches = list[tuple[int, ...]]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dyck")
    prepare(CORPUS, folder / "corpus")
    return folder / "corpus"


def load(data: Path, **options: Any) -> StackLanguageModelingTask:
    options = {"sample_break_mode": "eos", "dataset_impl": None, "use_plasma_view": False, **options}
    task = StackLanguageModelingTask.setup_task(StackLanguageModelingConfig(data=str(data / "data-bin"), **options))
    task.load_dataset("train")
    return task


def epochs(data: Path, size: int, **options: Any) -> list[Batches]:
    """The batches of three epochs, each the numbers of its strings, as fairseq-train makes them."""
    task = load(data, **options)
    return [_batches(task, size, epoch) for epoch in (1, 2, 3)]


def _batches(task: StackLanguageModelingTask, size: int, epoch: int) -> Batches:
    iterator: EpochBatchIterator = task.get_batch_iterator(
        task.dataset("train"), max_sentences=size, max_positions=(1000,), seed=1, epoch=epoch
    )
    return [tuple(batch["id"].tolist()) for batch in iterator.next_epoch_itr(shuffle=True)]


def lengths_in(data: Path, batches: Batches) -> list[set[int]]:
    lengths = [len(line.split()) for line in (data / "text" / "train.txt").read_text().splitlines()]
    return [{lengths[number] for number in batch} for batch in batches]


def test_batches_of_neighbours(data: Path) -> None:
    """Those that were drawn together, the smaller last one included, in another order in each epoch."""
    drawn = {tuple(range(start, min(start + BATCH_SIZE, 48))) for start in range(0, 48, BATCH_SIZE)}
    of_epochs = epochs(data, BATCH_SIZE, batches_of_neighbours=True)
    for batches in of_epochs:
        assert set(batches) == drawn
        assert len(batches) == len(drawn)
        assert all(len(lengths) == 1 for lengths in lengths_in(data, batches))
    assert of_epochs[0] != of_epochs[1] != of_epochs[2]
    assert of_epochs[0] != sorted(of_epochs[0])


@pytest.mark.parametrize("neighbours", [False, True])
def test_without_ends(data: Path, neighbours: bool) -> None:
    """Only the last target of each string is not scored, and the input stays as it is."""
    options = {"batches_of_neighbours": neighbours}
    dataset = load(data, without_eos=True, **options).dataset("train")
    whole = load(data, **options).dataset("train")
    without_ends, expected = (of.collater([of[number] for number in range(9)]) for of in (dataset, whole))
    pad, eos = 1, 2
    assert without_ends["net_input"]["src_tokens"].equal(expected["net_input"]["src_tokens"])
    assert without_ends["target"].equal(expected["target"].masked_fill(expected["target"] == eos, pad))
    assert (expected["target"] == eos).sum() == 9
    assert without_ends["ntokens"] == expected["ntokens"] - 9
    assert dataset.collater([]) == whole.collater([])


def test_without_ends_of_blocks(data: Path) -> None:
    with pytest.raises(UserError, match="needs --sample-break-mode eos, one sentence per sample; got none"):
        load(data, without_eos=True, sample_break_mode="none")
