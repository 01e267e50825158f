"""Text is split into words as in the Penn Treebank."""

from __future__ import annotations

from fairseq_stack_preprocess.text.penn import penn_splitter


def test_words_of_a_sentence() -> None:
    words = penn_splitter()("Mr. Smith (he) can't come.")
    assert words == ["Mr.", "Smith", "-LRB-", "he", "-RRB-", "ca", "n't", "come", "."]
