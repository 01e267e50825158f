"""Trees in brackets become attachments, with labels and without; what is not a tree of the sentence is an error."""

from __future__ import annotations

import random

import pytest

from fairseq_stack.errors import UserError
from fairseq_stack.inspection.brackets import bracketed, read_attachments

WORDS = ["The", "dog", "is", "happy"]


def read(text: str, words: list[str] = WORDS, pieces: list[int] | None = None) -> list[int]:
    return read_attachments(text, words, pieces or [1] * len(words), "--tree")


@pytest.mark.parametrize(
    ("text", "attachments"),
    [
        ("((The dog) (is happy))", [1, 1, 3, 2]),
        ("(S (NP (DT The) (NN dog)) (VP (VBZ is) (ADJP (JJ happy))))", [1, 1, 3, 2]),
        ("( (S (NP-SBJ (DT The) (NN dog))\n (VP (VBZ is) (NP (-NONE- *)) (JJ happy))) )", [1, 1, 3, 2]),
        ("(The dog is happy)", [1, 2, 3, 1]),
        ("(The dog) is happy", [1, 1, 3, 4]),
        ("(NP (DT The) (NN dog)) (VP (VBZ is) (JJ happy))", [1, 1, 3, 3]),
        ("The dog is happy", [1, 2, 3, 4]),
    ],
)
def test_reading(text: str, attachments: list[int]) -> None:
    assert read(text) == attachments


def test_writing() -> None:
    assert bracketed([1, 1, 3, 2], WORDS) == "((The dog) (is happy))"
    assert bracketed([1, 1, 3, 3], WORDS) == "(The dog) (is happy)"
    assert bracketed([1, 2, 2, 1], ["(", "a", ")", "b"]) == "(-LRB- ((a -RRB-) b))"
    assert bracketed([], []) == ""


def test_what_is_written_is_read() -> None:
    """Random attachments; a word may be a bracket."""
    rng = random.Random(1)
    for _ in range(50):
        words = rng.choices(["a", "b", "(", "x)"], k=rng.randint(1, 12))
        attachments: list[int] = []
        stack: list[int] = []
        for k in range(1, len(words) + 1):
            attachments.append(rng.choice([*stack, k]))
            stack = [end for end in stack if end < attachments[-1]] + [k]
        assert read(bracketed(attachments, words), words) == attachments


def test_pieces_of_a_word_are_a_node() -> None:
    assert read("((The dog) barks)", ["The", "dog", "barks"], [1, 3, 2]) == [1, 2, 3, 1, 5, 4]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("((The dog) (is happy)", "--tree, line 1: the tree that begins here is not closed where the file ends"),
        ("((The dog) (is happy)))", "--tree, line 1: a closing bracket without an opening bracket"),
        ("((The dog) () (is happy))", "--tree: expected a tree in brackets, got .*, in which something is empty"),
        (" ", "--tree: expected a tree in brackets, got ' ', in which something is empty"),
        ("((The dog) (is sad))", "--tree: its words are 'The dog is sad'; expected .* sentence, 'The dog is happy'"),
        ("(S (DT The) (NN cat) (VBZ is) (JJ sad))", "--tree: its words are 'The cat is sad'; expected .*"),
    ],
)
def test_mistakes(text: str, problem: str) -> None:
    with pytest.raises(UserError, match=f"^{problem}$"):
        read(text)
