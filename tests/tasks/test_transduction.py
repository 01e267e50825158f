"""The task stack_transduction: its data, batches, and errors for wrong data."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from fairseq.tasks import FairseqTask

from fairseq_stack import cli
from fairseq_stack.errors import UserError
from fairseq_stack.tasks._transductions import may_be_scored
from fairseq_stack.tasks.stack_transduction import StackTransductionConfig, StackTransductionTask
from fairseq_stack_preprocess.transduction.tasks import AFTER_READING, AT_LAST, TASKS
from tests.end_to_end.fairseq_commands import run

PAIRS = [("a b #", "# b a"), ("a #", "# a"), ("b b # a", "# # b b"), ("a", "a")]


def binarised(folder: Path, pairs: list[tuple[str, str]], *options: Any) -> Path:
    """Data of these pairs as train and test."""
    folder.mkdir(exist_ok=True)
    for side, strings in zip(("in", "out"), zip(*pairs, strict=True), strict=True):
        (folder / f"train.{side}").write_text("".join(f"{string}\n" for string in strings))
    (folder / "words").write_text("a 1\nb 1\n# 1\n")
    dictionary = ["--srcdict", folder / "words", *(options or ["--joined-dictionary"])]
    prefixes = ["--trainpref", folder / "train", "--testpref", folder / "train", "--padding-factor", 1]
    run("preprocess", "-s", "in", "-t", "out", *dictionary, *prefixes, "--destdir", folder / "data-bin")
    return folder / "data-bin"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return binarised(tmp_path_factory.mktemp("pairs") / "corpus", PAIRS)


def task_of(data: Path, **options: Any) -> StackTransductionTask:
    config = StackTransductionConfig(data=str(data), dataset_impl="mmap", train_subset="train", **options)
    return StackTransductionTask.setup_task(config)


def dataset_of(task: StackTransductionTask, split: str, whole: bool = False) -> Any:
    task.pads_to_longest = whole
    task.load_dataset(split)
    return task.dataset(split)


def text(task: StackTransductionTask, rows: torch.Tensor) -> list[str]:
    return [" ".join(task.dictionary[word] for word in row) for row in rows.tolist()]


def test_batch(data: Path) -> None:
    """No </s>; inputs are padded with blanks, and targets with padding, which also hides what is not scored."""
    task = task_of(data)
    dataset = dataset_of(task, "test")
    batch = dataset.collater([dataset[number] for number in range(3)])
    assert text(task, batch["net_input"]["src_tokens"]) == ["a b # #", "a # # #", "b b # a"]
    assert batch["net_input"]["src_lengths"].tolist() == [3, 2, 4]
    assert text(task, batch["whole_target"]) == ["# b a <pad>", "# a <pad> <pad>", "# # b b"]
    assert text(task, batch["target"]) == ["<pad> b a <pad>", "<pad> a <pad> <pad>", "<pad> <pad> b b"]
    assert (batch["id"].tolist(), batch["nsentences"], batch["ntokens"]) == ([0, 1, 2], 3, 9)
    assert dataset.collater([]) == {}


@pytest.mark.parametrize(("words", "scored"), [("a", {"a"}), ("# b", {"#", "b"})])
def test_score_words(data: Path, words: str, scored: set[str]) -> None:
    task = task_of(data, score_words=words)
    dataset = dataset_of(task, "test")
    target = dataset.collater([dataset[number] for number in range(4)])["target"]
    assert {task.dictionary[word] for word in target.flatten().tolist()} == {"<pad>", *scored}


def test_another_blank(data: Path) -> None:
    task = task_of(data, blank="b")
    dataset = dataset_of(task, "test")
    assert text(task, dataset.collater([dataset[1], dataset[2]])["net_input"]["src_tokens"]) == ["a # b b", "b b # a"]
    assert task.score_words == ["a", "#"]


def test_a_whole_input_has_the_length_of_the_longest(data: Path) -> None:
    task = task_of(data)
    dataset = dataset_of(task, "test", whole=True)
    assert text(task, dataset.collater([dataset[3]])["net_input"]["src_tokens"]) == ["a # # #"]
    assert dataset.num_tokens(3) == 4


def test_batches_are_shuffled_and_not_sorted_by_length(data: Path) -> None:
    task = task_of(data)
    train, test = dataset_of(task, "train"), dataset_of(task, "test")
    orders = [train.ordered_indices().tolist() for _ in range(20)]
    assert len(set(map(tuple, orders))) > 5
    assert np.array_equal(test.ordered_indices(), np.arange(4))


@pytest.mark.parametrize("name", TASKS)
def test_where_a_task_can_score(name: str) -> None:
    """All scored positions are among them; in the tasks that answer after reading, none is before the blanks."""
    source, rng = TASKS[name].training(TASKS[name].train), random.Random(0)
    number = {word: index for index, word in enumerate(source.alphabet.symbols)}
    scored_while_reading = False
    for _ in range(50):
        pair = source.draw(rng)
        inputs = torch.tensor([[number[word] for word in pair.input]])
        scored = torch.tensor([[word in source.alphabet.scored for word in pair.target]])
        places = may_be_scored(name, inputs, torch.tensor([len(pair.input)]), number[source.alphabet.blank])
        assert not (scored & ~places).any()
        assert name not in AT_LAST or torch.equal(scored, places)
        scored_while_reading |= bool((scored & (inputs != number[source.alphabet.blank])).any())
    assert scored_while_reading == (name not in AFTER_READING)


def test_where_other_data_can_be_scored() -> None:
    """Nothing is known of them but the lengths."""
    inputs, lengths = torch.tensor([[4, 5, 6], [4, 6, 6]]), torch.tensor([3, 1])
    assert may_be_scored(None, inputs, lengths, 6).int().tolist() == [[1, 1, 1], [1, 0, 0]]


def test_task_file(tmp_path: Path) -> None:
    """A corpus of fairseq-stack prepare transduction says itself what is blank, what is scored and how long it is."""
    assert cli.main(["prepare", "transduction", str(tmp_path / "xor"), "--task", "xor", "--limit", "3"]) == 0
    task = task_of(tmp_path / "xor" / "data-bin")
    assert (task.task_name, task.blank, task.score_words) == ("xor", "2", ["0", "1"])
    for split, length in (("train", 12), ("test", 24)):
        dataset = dataset_of(task, split, whole=True)
        batch = dataset.collater([dataset[0]])
        assert batch["net_input"]["src_tokens"].shape == (1, length)
    assert text(task, batch["net_input"]["src_tokens"])[0].endswith(" 2")
    path = tmp_path / "xor" / "task.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "longest": {**content["longest"], "train": 11}}))
    with pytest.raises(UserError, match=r"train, string 1: expected at most 11 symbols, .*, got 12; correct"):
        dataset_of(task_of(tmp_path / "xor" / "data-bin"), "train", whole=True)
    for broken, message in (
        ("[]", "TypeError"),
        ("{", "JSONDecodeError"),
        (json.dumps({**content, "blank": "?"}), "blank in .*task.json: expected one of 0 1 2, got ?"),
        (json.dumps({**content, "scored": ["1", "one"]}), "scored in .*task.json: expected some of 0 1 2, got one"),
    ):
        path.write_text(broken)
        with pytest.raises(UserError, match=message.replace("?", r"\?")):
            task_of(tmp_path / "xor" / "data-bin")


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([("a b", "b a"), ("a b", "a")], "string 2: expected a target as long as the input, got an input of 2 symbols"),
        ([("a x b", "a a a")], "string 1: the input has a symbol that the dictionary lacks .*; expected some of a b #"),
        ([("a", "a"), ("a", "y")], "string 2: the target has a symbol that the dictionary lacks"),
        ([("a", "a"), ("", "")], "string 2: the input is empty"),
    ],
    ids=["lengths", "input", "target", "empty"],
)
def test_wrong_data(tmp_path: Path, pairs: list[tuple[str, str]], message: str) -> None:
    data = binarised(tmp_path / "corpus", pairs)
    with pytest.raises(UserError, match=f"^{re.escape(str(data))}/test, {message}"):
        dataset_of(task_of(data), "test")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"score_words": "a c"}, "--score-words: expected some of a b #, got c"),
        ({"score_words": " "}, "--score-words: expected some of a b #, got nothing"),
        ({"blank": "_"}, "--blank: expected one of a b #, got _"),
    ],
)
def test_words_that_the_dictionary_lacks(data: Path, options: dict[str, str], message: str) -> None:
    with pytest.raises(UserError, match=f"^{message}$"):
        task_of(data, **options)


def test_wrong_folders(data: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no pair of languages"):
        task_of(tmp_path)
    with pytest.raises(FileNotFoundError, match="Dataset not found: valid"):
        dataset_of(task_of(data), "valid")
    (tmp_path / "dict.in.txt").write_text("a 1\nb 1\n")
    (tmp_path / "dict.out.txt").write_text("b 1\na 1\n")
    with pytest.raises(UserError, match="differ: expected the same words in the same order"):
        task_of(tmp_path, source_lang="in", target_lang="out")


def test_inputs_are_padded_as_any_model_of_an_ensemble_needs(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FairseqTask, "build_model", lambda task, cfg, from_checkpoint=False: cfg)
    task = task_of(data)
    for whole in (True, False):
        task.build_model(SimpleNamespace(reads_whole_input=whole))
    assert task.pads_to_longest


def test_a_blank_is_needed_where_the_network_reads_it(data: Path, tmp_path: Path) -> None:
    for name in ("dict.in.txt", "dict.out.txt"):
        (tmp_path / name).write_text("a 1\nb 1\n")
    task = task_of(tmp_path, source_lang="in", target_lang="out")
    assert task.blank is None and task.score_words == ["a", "b"]
    task.build_dataset_for_inference([torch.tensor([4, 5])], [2])
    task.pads_to_longest = True
    with pytest.raises(UserError, match=r"^--blank: expected the word that pads inputs"):
        task.build_dataset_for_inference([torch.tensor([4, 5])], [2])
