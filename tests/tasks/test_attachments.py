"""The task pushdown_language_modeling: sentences have their attachments, tapes and what is legal in batches."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_stack.errors import UserError
from fairseq_stack.ops import legal_attachments, stack_tape
from fairseq_stack.tasks.pushdown_language_modeling import PushdownLanguageModelingConfig, PushdownLanguageModelingTask
from tests.end_to_end.fairseq_commands import run
from tests.models.building import DICTIONARY, build_pushdown_model

SENTENCES = ["the dog is happy", "go", "the cat sat"]
ATTACHMENTS = ["1 1 3 2", "1", "1 1 2"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as fairseq-stack prepare treebank writes it."""
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "text").mkdir()
    (folder / "text" / "train.txt").write_text("".join(f"{line}\n" for line in SENTENCES), encoding="utf-8")
    (folder / "text" / "train.attach").write_text("".join(f"{line}\n" for line in ATTACHMENTS), encoding="utf-8")
    run("preprocess", "--only-source", "--trainpref", folder / "text" / "train.txt", "--destdir", folder / "data-bin")
    return folder


def task_of(corpus: Path, **options: Any) -> PushdownLanguageModelingTask:
    options = {"dataset_impl": None, "use_plasma_view": False, "seed": 1, "batch_size": None, **options}
    options = {"tokens_per_sample": 50, **options}
    config = PushdownLanguageModelingConfig(data=str(corpus / "data-bin"), **options)
    task: PushdownLanguageModelingTask = PushdownLanguageModelingTask.setup_task(config)
    return task


def batch_of(task: PushdownLanguageModelingTask, rows: list[int]) -> dict[str, Any]:
    task.load_dataset("train")
    dataset = task.datasets["train"]
    batch: dict[str, Any] = dataset.collater([dataset[row] for row in rows])
    return batch


def test_models_of_fairseq_are_refused() -> None:
    with pytest.raises(UserError, match=r"expected --arch pushdown_.*, got a TransformerLanguageModel$"):
        build_pushdown_model("transformer_lm", DICTIONARY)


def test_batches(corpus: Path) -> None:
    task = task_of(corpus)
    batch = batch_of(task, [1, 0, 2])
    words = [[task.dictionary[word] for word in row] for row in batch["net_input"]["src_tokens"].tolist()]
    assert words[1] == ["</s>", "the", "dog", "is", "happy"]
    assert batch["net_input"]["next_words"] is batch["target"]
    of_target = [[1, 0, 3, 4, 5], [1, 1, 3, 2, 0], [1, 1, 2, 0, 5]]
    assert batch["attachments"].tolist() == of_target
    parses = torch.tensor([[0, 1, 2, 3, 4], [0, 1, 1, 3, 2], [0, 1, 1, 2, 4]])
    assert torch.equal(batch["net_input"]["tape"], stack_tape(parses))
    ends = batch["target"] == task.dictionary.eos()
    assert ends.sum() == 3
    assert torch.equal(batch["legal_attachments"], legal_attachments(parses, ends))
    is_scored = batch["target"] != task.dictionary.pad()
    chosen = batch["legal_attachments"].gather(2, batch["attachments"].unsqueeze(2)).squeeze(2)
    assert chosen[is_scored].all()
    assert batch_of(task, []) == {}


def test_windows(corpus: Path) -> None:
    """The end of a sentence is ROOT of the next; in between, all is as in the sentence alone."""
    alone, task = (
        (batch_of(task_of(corpus), [row]) for row in range(3)),
        task_of(corpus, sample_break_mode="complete", tokens_per_sample=8),
    )
    batch = batch_of(task, [0, 1])
    words = [[task.dictionary[word] for word in row] for row in batch["net_input"]["src_tokens"].tolist()]
    assert words == [
        ["</s>", "the", "dog", "is", "happy", "</s>", "go"],
        ["</s>", "the", "cat", "sat", *["<pad>"] * 3],
    ]
    assert batch["attachments"].tolist() == [[1, 1, 3, 2, 0, 6, 5], [1, 1, 2, 0, 5, 6, 7]]
    for (row, root), sentence in zip([(0, 0), (0, 5), (1, 0)], alone, strict=True):
        length = sentence["target"].size(1)
        places, columns = slice(root, root + length), slice(root + 1, root + length)
        assert torch.equal(batch["target"][row, places], sentence["target"][0])
        assert torch.equal(batch["net_input"]["tape"][row, places, columns], sentence["net_input"]["tape"][0, :, 1:])
        assert torch.equal(batch["attachments"][row, places], root + sentence["attachments"][0])
        legal = batch["legal_attachments"][row, places]
        assert torch.equal(legal[:, root : root + length + 1], sentence["legal_attachments"][0])
        assert legal.sum() == sentence["legal_attachments"].sum()


@pytest.mark.parametrize(
    "option", [{"without_eos": True}, {"batches_of_neighbours": True}, {"pad_to_fixed_length": True}]
)
def test_other_options_of_batches(corpus: Path, option: dict[str, bool]) -> None:
    task = task_of(corpus, **option)
    batch = batch_of(task, [0, 1])
    shape = batch["target"].shape
    assert shape == (2, 50 if "pad_to_fixed_length" in option else 5)
    assert batch["net_input"]["tape"].shape == (*shape, shape[1])
    assert batch["attachments"][0, :5].tolist() == [1, 1, 3, 2, 0]
    assert bool((batch["target"] == task.dictionary.eos()).any()) != ("without_eos" in option)


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (ATTACHMENTS[:2], "expected 3 lines, one for each sentence of the data, got 2; prepare the corpus again"),
        (["1 1 3", *ATTACHMENTS[1:]], "line 1: expected 4 attachments, one for each token, got 3"),
        (["1 1 3 x", *ATTACHMENTS[1:]], "line 1: expected numbers of tokens, got '1 1 3 x'"),
        ([*ATTACHMENTS[:2], "1 1 1"], "line 3: token 3 attaches to 1, where no constituent on the stack ends"),
        (["1 1 3 0", *ATTACHMENTS[1:]], "line 1: token 4 attaches to 0, where no constituent on the stack ends"),
    ],
    ids=["lines", "tokens", "letters", "inside", "root"],
)
def test_wrong_attachments(corpus: Path, tmp_path: Path, lines: list[str], problem: str) -> None:
    path = tmp_path / "train.attach"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    with pytest.raises(UserError, match=rf"^{re.escape(str(path))}(: |, ){re.escape(problem)}"):
        batch_of(task_of(corpus, attachments=str(tmp_path)), [0])


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        (
            {"sample_break_mode": "none"},
            "needs --sample-break-mode eos, one sentence per sample, or complete, several whole ones; got none",
        ),
        ({"add_bos_token": True}, "sentences with parses cannot have --add-bos-token"),
        ({"shorten_method": "truncate"}, "sentences with parses cannot have --shorten-method truncate"),
    ],
)
def test_options_that_cannot_be(corpus: Path, option: dict[str, Any], problem: str) -> None:
    with pytest.raises(UserError, match=f"{re.escape(problem)}$"):
        task_of(corpus, **option)
