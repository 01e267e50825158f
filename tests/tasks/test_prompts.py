"""The task prompt_classification: batches have labels and, in validation, the same prompts with each label."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from fairseq_stack.errors import UserError
from fairseq_stack.tasks._prompts import _with_label
from fairseq_stack.tasks.prompt_classification import PromptClassificationConfig, PromptClassificationTask
from tests.end_to_end.fairseq_commands import run

LINES = {"txt": ["the dog is happy : no", "go : oh yes", "a : no"], "label": ["no", "oh yes", "no"]}
ATTACHMENTS = ["1 1 3 2 5 6", "1 1 3 4", "1 2 3"]
TASK_FILE = '{"task": "any", "labels": {"no": ["no"], "oh yes": ["oh", "yes"]}}'


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as fairseq-stack prepare classification and parse-prompts write it."""
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "text").mkdir()
    for split in ("train", "valid"):
        for suffix, lines in {**LINES, "attach": ATTACHMENTS}.items():
            (folder / "text" / f"{split}.{suffix}").write_text("".join(f"{line}\n" for line in lines))
    (folder / "task.json").write_text(TASK_FILE)
    texts = [word for split in ("train", "valid") for word in (f"--{split}pref", folder / "text" / f"{split}.txt")]
    run("preprocess", "--only-source", *texts, "--destdir", folder / "data-bin")
    return folder


def batch_of(
    corpus: Path, split: str, has_parses: bool, combine: bool = False, **options: Any
) -> tuple[PromptClassificationTask, Any]:
    options = {"dataset_impl": None, "use_plasma_view": False, "seed": 1, "batch_size": None, **options}
    config = PromptClassificationConfig(
        data=str(corpus / "data-bin"), tokens_per_sample=50, train_subset="train", **options
    )
    task: PromptClassificationTask = PromptClassificationTask.setup_task(config)
    task.has_parses = has_parses
    task.load_dataset(split, combine=combine)
    dataset = task.datasets[split]
    return task, dataset.collater([dataset[row] for row in (1, 0)])


def strings(task: PromptClassificationTask, tokens: torch.Tensor) -> list[str]:
    """Rows of words, without padding."""
    rows = tokens.tolist()
    return [" ".join(task.dictionary[word] for word in row if word != task.dictionary.pad()) for row in rows]


@pytest.mark.parametrize("without_eos", [False, True])
@pytest.mark.parametrize("has_parses", [False, True])
def test_batches(has_parses: bool, without_eos: bool, corpus: Path) -> None:
    task, batch = batch_of(corpus, "valid", has_parses, without_eos=without_eos)
    end = "" if without_eos else " </s>"
    assert strings(task, batch["target"]) == [f"go : oh yes{end}", f"the dog is happy : no{end}"]
    assert batch["labels"].tolist() == [1, 0]
    assert batch["is_label"].nonzero().tolist() == [[0, 2], [0, 3], [1, 5]]
    no, yes = batch["candidates"]
    assert strings(task, no["target"]) == [f"go : no{end}", f"the dog is happy : no{end}"]
    assert strings(task, yes["target"]) == [f"go : oh yes{end}", f"the dog is happy : oh yes{end}"]
    assert strings(task, yes["net_input"]["src_tokens"]) == ["</s> go : oh yes", "</s> the dog is happy : oh yes"]
    assert no["is_label"].nonzero().tolist() == [[0, 2], [1, 5]]
    assert yes["is_label"].nonzero().tolist() == [[0, 2], [0, 3], [1, 5], [1, 6]]
    assert ("attachments" in batch) == ("tape" in no["net_input"]) == has_parses
    if has_parses:
        right = [batch["net_input"]["tape"][0, :5, :5], batch["net_input"]["tape"][1]]
        assert torch.equal(yes["net_input"]["tape"][0, :5, :5], right[0])
        assert torch.equal(no["net_input"]["tape"][1, :7, :7], right[1])


def test_a_candidate_does_not_have_the_parse_of_the_right_label() -> None:
    sample = {"source": [2, 10, 11, 20], "target": [10, 11, 20, 2], "attachments": [1, 2, 1, 0]}
    changed = _with_label({name: torch.tensor(row) for name, row in sample.items()}, 1, torch.tensor([30, 31]))
    assert changed["target"].tolist() == [10, 11, 30, 31, 2]
    assert changed["attachments"].tolist() == [1, 2, 3, 4, 0]


def test_one_prompt_in_a_sample(corpus: Path) -> None:
    with pytest.raises(UserError, match=r"needs --sample-break-mode eos, one prompt per sample; got complete$"):
        batch_of(corpus, "valid", True, sample_break_mode="complete")


def test_labels_that_the_dictionary_lacks(corpus: Path, tmp_path: Path) -> None:
    other = shutil.copytree(corpus, tmp_path / "other")
    (other / "task.json").write_text(TASK_FILE.replace('["no"]', '["never"]'))
    with pytest.raises(UserError, match=r"^the label 'no': expected tokens of the dictionary of .*, got 'never'$"):
        batch_of(other, "valid", True)


def test_a_regression_needs_its_criterion(corpus: Path, tmp_path: Path) -> None:
    other = shutil.copytree(corpus, tmp_path / "other")
    (other / "task.json").write_text('{"task": "any", "labels": null}')
    (other / "text" / "valid.label").write_text("1\n2\n3\n")
    task, _ = batch_of(other, "valid", False)
    with pytest.raises(UserError, match=r"a regression needs --criterion class.* got cross_entropy$"):
        task.build_criterion(SimpleNamespace(_name="cross_entropy"))


def test_the_longest_candidate_counts(corpus: Path) -> None:
    """The second prompt has the longest label; the two others are a token longer with it."""
    task, _ = batch_of(corpus, "valid", False)
    dataset = task.datasets["valid"]
    assert [dataset.size(index) for index in range(3)] == dataset.sizes.tolist() == [8, 5, 5]
    kept, ignored = dataset.filter_indices_by_size(np.arange(3), 7)
    assert (kept.tolist(), ignored) == ([1, 2], [0])
    batches = dataset.batch_by_size(dataset.ordered_indices(), max_tokens=10)
    assert sorted(map(len, batches)) == [1, 2]


def test_training_has_no_candidates(corpus: Path) -> None:
    _, batch = batch_of(corpus, "train", True, combine=True)  # as the trainer does
    assert "candidates" not in batch and batch["labels"].tolist() == [1, 0]
    _, validated = batch_of(corpus, "train", True)
    assert "candidates" in validated
