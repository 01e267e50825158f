"""Attachments, tapes and trees: against golden ones and Algorithm 1, one token at a time, and back again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from torch import Tensor
from torch.nn.functional import pad

from fairseq_stack.ops.stack_tape import StackTapeState, legal_attachments, roots_of_sentences, stack_tape
from fairseq_stack.ops.stack_tape.pytorch import nodes_pytorch
from fairseq_stack.ops.stack_tape.reference import stack_tape_reference
from fairseq_stack_preprocess.trees.brackets import tagged_words
from fairseq_stack_preprocess.trees.spans import attachments as attachments_of_spans
from fairseq_stack_preprocess.trees.spans import binary_spans
from tests.helpers import hostile
from tests.ops.stack_tape.parses import batches, golden_parses, joined, windows
from tests.preprocess.trees.treebanks import cleaned_trees

DOG = [0, 1, 1, 3, 2, 0]  # ((The dog) (is happy)), and the end


def padded(rows: Sequence[Sequence[int]]) -> Tensor:
    return torch.tensor([[*row, *[0] * (len(rows) - len(row))] for row in rows])


def nodes_of_spans(spans: Sequence[tuple[int, int]], tokens: int) -> Tensor:
    nodes = torch.zeros(tokens, tokens, dtype=torch.bool)
    for first, last in spans:
        nodes[last, first] = True
    return nodes


def test_example_of_the_paper() -> None:
    tape = stack_tape(torch.tensor([DOG]))[0].tolist()
    rows = [tape[t][1 : t + 1] for t in range(1, 5)]
    assert rows == [[0], [1, 1], [1, 1, 0], [2, 2, 2, 2]]
    assert tape[5] == [1, 4, 4, 4, 4, 2]
    expected = nodes_of_spans([(1, 2), (3, 4), (1, 4), (1, 5), (0, 5)], 6)
    assert torch.equal(nodes_pytorch(torch.tensor([DOG]))[0], expected)


def check_tape(attachments: Sequence[int]) -> None:
    """The tape, and one token at a time, against Algorithm 1."""
    batch = torch.tensor([attachments])
    tape = stack_tape(batch)
    assert torch.equal(tape[0], padded(stack_tape_reference(attachments)))
    check_steps(batch, tape)


def check_steps(attachments: Tensor, tape: Tensor) -> None:
    state, legal = StackTapeState.initial(batch_size=len(attachments)), legal_attachments(attachments)
    for t in range(attachments.size(1)):
        state = state.step(attachments[:, t]) if t else state
        assert torch.equal(state.depths, tape[:, t, : t + 1])
        assert torch.equal(pad(state.legal(), (0, legal.size(2) - t - 2)), legal[:, t])


@pytest.mark.parametrize(("name", "number"), [("trees_dickens", 104), ("trees_nltk_sample", 46), ("dyck", 48)])
def test_golden_parses(name: str, number: int, reference_data: Path) -> None:
    examples = golden_parses(reference_data, name)
    assert len(examples) == number
    for example in examples:
        attachments, depths = example["attachments"], example["depth_tapes" if name == "dyck" else "tapes"]
        assert stack_tape_reference(attachments) == depths
        check_tape(attachments)


@pytest.mark.parametrize(
    ("name", "number"),
    [("test.txt.gz", 293), hostile("valid.txt.gz", 346), hostile("train.txt.gz", 6904), hostile("nltk", 3914)],
)
def test_every_tree_of_a_treebank(name: str, number: int, reference_data: Path, tmp_path: Path) -> None:
    """From the tree to attachments, and from these to the tape and back to the tree."""
    trees = cleaned_trees(name, reference_data, tmp_path)
    assert len(trees) == number
    for tree in trees:
        tokens, spans = len(list(tagged_words(tree))), binary_spans(tree)
        attached = [0, *attachments_of_spans(spans, tokens)]
        check_tape(attached)
        assert torch.equal(nodes_pytorch(torch.tensor([attached]))[0], nodes_of_spans(spans, tokens + 1))


@settings(max_examples=50)
@given(rows=batches())
def test_batches_of_parses(rows: list[list[int]]) -> None:
    for row in rows:
        check_tape(row)
    attachments = torch.tensor(rows)
    tape = stack_tape(attachments)
    assert torch.equal(tape, torch.cat([stack_tape(row.unsqueeze(0)) for row in attachments]))
    check_steps(attachments, tape)


@given(rows=batches(6))
def test_legal_attachments(rows: list[list[int]]) -> None:
    """A next word may attach to j if Algorithm 1 can do it; only the end may attach to ROOT of its sentence."""
    attachments = torch.tensor(rows)
    legal, roots = legal_attachments(attachments), roots_of_sentences(attachments)
    for row, actual, row_of_roots in zip(rows, legal.tolist(), roots.tolist(), strict=True):
        for t, root in enumerate(row_of_roots):
            assert root == max(k for k in range(t + 1) if begins_at_root(row, k))
            expected = [j != root and is_possible([*row[: t + 1], j]) for j in range(t + 2)]
            assert actual[t] == expected + [False] * (len(row) - t - 1)
    ends = torch.zeros_like(attachments, dtype=torch.bool)
    ends[:, -1] = True
    expected_of_ends = legal.clone()
    expected_of_ends[:, -1] = torch.arange(legal.size(2)) == roots[:, -1:]
    assert torch.equal(legal_attachments(attachments, ends), expected_of_ends)


def begins_at_root(attachments: Sequence[int], token: int) -> bool:
    while attachments[token] != token:
        token = attachments[token]
    return token == 0


@settings(max_examples=50)
@given(sentences=windows())
def test_sentences_of_a_window(sentences: list[list[int]]) -> None:
    """The columns of the words of a sentence are those of the sentence alone, and legal is what is legal there."""
    window = torch.tensor([joined(sentences)])
    tape, legal = stack_tape(window)[0], legal_attachments(window)[0]
    root = 0
    for sentence in sentences:
        alone, end = torch.tensor([sentence]), root + len(sentence) - 1
        own = slice(root + 1, end)
        assert torch.equal(tape[root:end, own], stack_tape(alone)[0, :-1, 1:-1])
        assert torch.equal(legal[root:end, root : end + 1], legal_attachments(alone)[0, :-1, : len(sentence)])
        assert legal[root:end].sum() == legal[root:end, root : end + 1].sum()
        root = end


def is_possible(attachments: Sequence[int]) -> bool:
    try:
        stack_tape_reference(attachments)
    except ValueError:
        return False
    return True


def test_no_tokens() -> None:
    none = torch.zeros(2, 0, dtype=torch.long)
    assert stack_tape(none).shape == nodes_pytorch(none).shape == (2, 0, 0)
    assert legal_attachments(none).shape == (2, 0, 1)


@pytest.mark.parametrize(
    ("attachments", "problem"),
    [
        ([1], "token 0 of row 1 attaches to 1; expected 0"),
        ([0, 2], "token 1 of row 1 attaches to 2; expected 0 or 1"),
        ([0, -1], "token 1 of row 1 attaches to -1; expected 0 or 1"),
        ([0, 1, 1, 1], "token 3 of row 1 attaches to 1; expected 0 or 2 or 3"),
        ([0, 1, 2, 9, 0, 0], "token 3 of row 1 attaches to 9; expected 0 or 1 or 2 or 3"),
        ([0, 1, 0, 1], "token 3 of row 1 attaches to 1; expected 2 or 3"),
        ([0, 1, 0, 0], "token 3 of row 1 attaches to 0; expected 2 or 3"),
    ],
    ids=["root", "ahead", "negative", "inside", "first-of-several", "in-the-last-sentence", "root-of-the-last"],
)
def test_illegal_attachments(attachments: list[int], problem: str) -> None:
    batch = torch.stack([torch.arange(len(attachments)), torch.tensor(attachments)])
    for function in (stack_tape, legal_attachments):
        with pytest.raises(ValueError, match=f"^attachments: {problem}$"):
            function(batch)


@pytest.mark.parametrize("attached", [-1, 1, 4])
def test_illegal_steps(attached: int) -> None:
    state = StackTapeState.initial(batch_size=2).step(torch.tensor([1, 1])).step(torch.tensor([2, 1]))
    with pytest.raises(
        ValueError, match=rf"^attachments: token 3 of row 1 attaches to {attached}; expected 0 or 2 or 3$"
    ):
        state.step(torch.tensor([3, attached]))


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda: stack_tape(torch.zeros(2, 3)), r"attachments: expected a LongTensor of shape \(B, T\), got .*float32"),
        (
            lambda: legal_attachments(torch.tensor([[0, 1]]), torch.tensor([[True]])),
            r"ends: expected a BoolTensor of shape \(1, 2\) like attachments, got shape \(1, 1\) of torch.bool",
        ),
        (lambda: StackTapeState.initial(batch_size=2).step(torch.zeros(2)), r"attachments: expected .*\(2,\), got"),
        (lambda: StackTapeState.initial(batch_size=2).reorder(torch.tensor([2])), "index: expected row numbers from 0"),
    ],
)  # fmt: skip
def test_wrong_arguments(call: Callable[[], object], problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{problem}"):
        call()
