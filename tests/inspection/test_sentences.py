"""Sentences of text: what the dictionary must have. Lines of data sets are in tests/end_to_end/test_inspect.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairseq_stack.errors import UserError
from fairseq_stack.hub.interface import Hub, load
from fairseq_stack.inspection.sentences import sentence_of_text, sentences_of_file
from tests.inspection.checkpoints import write_translation_model


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Hub:
    folder = tmp_path_factory.mktemp("sentences")
    write_translation_model(folder / "data", folder / "checkpoint.pt", "sup-4")
    return load(folder / "checkpoint.pt", folder / "data")


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


def test_lines_of_a_text(hub: Hub, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("w0\nw1 w1\nw0 w1\nx\n", encoding="utf-8")
    for first, count, expected in ((1, 2, ["w0", "w1 w1"]), (3, 1, ["w0 w1"])):
        found = sentences_of_file(hub, path, first, count)
        assert [hub.src_dict.string(sentence.source) for sentence in found] == expected
    with pytest.raises(UserError, match=r"text\.txt, line 4 has 'x', which the dictionary of the model lacks"):
        sentences_of_file(hub, path, 2, 100)
    with pytest.raises(UserError, match=r"text\.txt has 4 lines, and no line 5"):
        sentences_of_file(hub, path, 5, 1)
