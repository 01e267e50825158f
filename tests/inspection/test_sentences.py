"""Sentences of text: what the dictionary must have. Lines of data sets are in tests/end_to_end/test_inspect.py."""

from __future__ import annotations

import pytest

from fairseq_stack.errors import UserError
from fairseq_stack.hub.interface import Hub
from fairseq_stack.inspection.sentences import sentence_of_text


def test_unknown_words(hub: Hub) -> None:
    found = sentence_of_text(hub, "w0 <unk>", "<unk>")
    assert found.target is not None
    assert hub.src_dict.string(found.source) == "w0 <unk>" and hub.tgt_dict.string(found.target) == "<unk>"
    with pytest.raises(UserError) as error:
        sentence_of_text(hub, "w0 x w1 y")
    assert str(error.value) == (
        "sentence 1 has 'x', 'y', which the dictionary of the model lacks; write <unk> for a word that the model does "
        "not know"
    )
    with pytest.raises(UserError, match=r"the translation of sentence 1 has 'x', which the dictionary"):
        sentence_of_text(hub, "w0", "w1 x")
    with pytest.raises(UserError, match=r"has 'a', 'b', 'c', 'd', 'e', \.\.\., which"):
        sentence_of_text(hub, "a b c d e f")
