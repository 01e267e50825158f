"""Binary trees as operations of a stack, and back: all small trees."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import comb

import pytest

from fairseq_stack_preprocess.trees.operations import TreeOperation, is_tree, operations, spans_of_operations
from fairseq_stack_preprocess.trees.spans import Span, attachments, spans_of_attachments

BEGIN, PUSH, POP, DESCEND, CLIMB = TreeOperation


def binary_trees(first: int, last: int) -> Iterator[list[Span]]:
    if first == last:
        yield []
    for middle in range(first, last):
        for left, right in product(binary_trees(first, middle), binary_trees(middle + 1, last)):
            yield sorted([*left, *right, (first, last)], key=lambda span: (span[1], -span[0]))


@pytest.mark.parametrize("tokens", range(1, 9))
def test_each_path_is_one_tree(tokens: int) -> None:
    trees = list(binary_trees(1, tokens))
    encoded = {tuple(operations(tree, tokens)) for tree in trees}
    assert len(encoded) == len(trees) == comb(2 * tokens - 2, tokens - 1) // tokens
    inner = product((PUSH, POP, DESCEND, CLIMB), repeat=max(0, tokens - 2))
    ends = [BEGIN] * min(1, tokens - 1)
    assert encoded == {path for each in inner if is_tree(path := (BEGIN, *each, *ends))}
    assert [spans_of_operations(operations(tree, tokens)) for tree in trees] == trees
    assert [spans_of_attachments(attachments(tree, tokens)) for tree in trees] == trees


@pytest.mark.parametrize(
    ("attached", "expected"),
    [
        ([1, 2, 3, 4, 5, 1], [BEGIN, DESCEND, DESCEND, DESCEND, DESCEND, BEGIN]),
        ([1, 1, 2, 3, 4], [BEGIN, CLIMB, CLIMB, CLIMB, BEGIN]),
        ([1, 2, 3, 2, 1], [BEGIN, PUSH, DESCEND, POP, BEGIN]),  # w # w^R
        ([1, 2, 2, 1], [BEGIN, PUSH, POP, BEGIN]),  # w w^R
        ([1, 1, 3, 2], [BEGIN, CLIMB, DESCEND, BEGIN]),  # ((The dog) (is happy))
    ],
)
def test_examples(attached: list[int], expected: list[TreeOperation]) -> None:
    assert operations(spans_of_attachments(attached), len(attached)) == expected


def test_trees_in_a_row_branch_to_the_right() -> None:
    forest = [(1, 2), (4, 5), (3, 5)]
    assert operations(forest, 6) == operations([(1, 2), (4, 5), (3, 5), (3, 6), (1, 6)], 6)


def test_any_operations_are_a_tree() -> None:
    for found in product(TreeOperation, repeat=5):
        spans = spans_of_operations(found)
        assert spans in list(binary_trees(1, 5))
        if is_tree(found) and BEGIN not in found[1:-1]:
            assert operations(spans, 5) == [BEGIN, *found[1:-1], BEGIN]
