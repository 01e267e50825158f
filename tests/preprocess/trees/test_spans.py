"""Spans and attachments: against golden trees and nltk's normal form, and back again."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import nltk
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_stack.inspection.brackets import bracketed
from fairseq_stack_preprocess.trees.brackets import clean, read_trees, tagged_words
from fairseq_stack_preprocess.trees.spans import (
    Span,
    attachments,
    binary_spans,
    depths,
    format_spans,
    parse_spans,
    piece_spans,
    spans_of_attachments,
)
from tests.preprocess.trees.treebanks import as_nltk, trees_of


def read_one(text: str, folder: Path) -> list[Span]:
    (folder / "tree").write_text(text, encoding="utf-8")
    (tree,) = trees_of(folder / "tree")
    return binary_spans(tree)


def golden(reference_data: Path, name: str) -> list[dict[str, Any]]:
    path = reference_data / "golden" / "pushdown" / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(("name", "number"), [("trees_dickens", 104), ("trees_nltk_sample", 46)])
def test_golden_trees(name: str, number: int, reference_data: Path, tmp_path: Path) -> None:
    """The binary tree, the attachments and the last row of the stack tape, over words and over pieces."""
    examples = golden(reference_data, name)
    assert len(examples) == number
    in_pieces = 0
    for example in examples:
        spans, tokens = read_one(example["tree"], tmp_path), example["tokens"][1:-1]
        if "pieces" in example:
            in_pieces += 1
            spans = piece_spans(spans, [len(pieces) for pieces in example["pieces"]])
        assert attachments(spans, len(tokens)) == example["attachments"][1:-1]
        assert bracketed(attachments(spans, len(tokens)), tokens) == example["binary"]
        assert spans_of_attachments(example["attachments"][1:-1]) == spans
        assert depths(spans, len(tokens)) == example["tapes"][-2][1:]
        assert max(0, *depths(spans, len(tokens))) == example["max_depth"]
    assert in_pieces == (12 if name == "trees_dickens" else 0)


def test_golden_dyck_words(reference_data: Path) -> None:
    """Attachments that do not end in one tree: a closing bracket sweeps what lies between it and its partner."""
    for example in golden(reference_data, "dyck"):
        attached = example["attachments"][1 : len(example["tokens"])]
        attached = attached[:-1] if example["tokens"][-1] == "<eos>" else attached
        spans = spans_of_attachments(attached)
        row = example["depth_tapes"][len(attached)]
        assert depths(spans, len(attached)) == row[1:]


@pytest.mark.parametrize("split", ["valid", "test"])
def test_normal_form_agrees_with_nltk(split: str, reference_data: Path) -> None:
    path = reference_data / "data" / "transformer_grammars_example" / f"{split}.txt.gz"
    deepest = 0
    for _, raw in read_trees(path):
        tree = clean(raw)
        assert tree is not None
        words = [word for _, word in tagged_words(tree)]
        spans = binary_spans(tree)
        expected = as_nltk(tree)
        expected.collapse_unary(collapsePOS=True, collapseRoot=True)
        expected.chomsky_normal_form()
        attached = attachments(spans, len(words))
        assert bracketed(attached, words) == in_brackets(expected)
        assert spans_of_attachments(attached) == spans
        deepest = max(deepest, *depths(spans, len(words)))
    assert deepest == {"valid": 42, "test": 36}[split]


def in_brackets(tree: nltk.Tree | str) -> str:
    if isinstance(tree, str):
        return tree
    parts = [in_brackets(child) for child in tree]
    return parts[0] if len(parts) == 1 else f"({' '.join(parts)})"


@st.composite
def binary_trees(draw: st.DrawFn) -> tuple[list[Span], int]:
    """A random sequence of attachments that ends in one tree, as spans."""
    tokens = draw(st.integers(1, 12))
    stack: list[int] = []
    attached = []
    for k in range(1, tokens + 1):
        choices = [stack[0]] if stack and k == tokens else [*stack, k]
        r = draw(st.sampled_from(choices))
        attached.append(r)
        stack = [last for last in stack if last < r] + [k]
    return spans_of_attachments(attached), tokens


@given(tree=binary_trees(), data=st.data())
def test_round_trips(tree: tuple[list[Span], int], data: st.DataObject) -> None:
    spans, tokens = tree
    assert len(spans) == tokens - 1
    assert parse_spans(format_spans(spans)) == spans
    assert spans_of_attachments(attachments(spans, tokens)) == spans
    row = depths(spans, tokens)
    assert math.fsum(2.0**-depth for depth in row) == 1
    pieces = data.draw(st.lists(st.integers(1, 3), min_size=tokens, max_size=tokens))
    over_pieces = piece_spans(spans, pieces)
    assert len(over_pieces) == sum(pieces) - 1
    assert over_pieces == spans_of_attachments(attachments(over_pieces, sum(pieces)))
    assert words_again(over_pieces, pieces) == spans


def words_again(spans: list[Span], pieces: list[int]) -> list[Span]:
    """The spans over words, from those over pieces."""
    word_of = [0, *(word for word, count in enumerate(pieces, start=1) for _ in range(count))]
    nodes = [(word_of[first], word_of[last]) for first, last in spans]
    return [(first, last) for first, last in nodes if first != last]


@pytest.mark.parametrize("attached", [[2], [1, 1, 1], [1, 2, 0], [0]], ids=["ahead", "inside", "root", "root-at-once"])
def test_impossible_attachments(attached: list[int]) -> None:
    with pytest.raises(ValueError, match="attaches to"):
        spans_of_attachments(attached)
