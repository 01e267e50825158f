"""Text is split into words as in the Penn Treebank."""

from __future__ import annotations

from fairseq_stack_preprocess.text.penn import penn_splitter


def test_words_of_a_sentence() -> None:
    expected = ["Mr.", "Smith", "(", "he", ")", "ca", "n't", "come", "."]
    words = penn_splitter()("Mr. Smith (he) can't come.")
    assert words == [{"(": "-LRB-", ")": "-RRB-"}.get(word, word) for word in expected]
