"""The division of a stream into rows and segments, and the states between segments."""

from __future__ import annotations

import io
from typing import Any

import pytest
import torch
from fairseq.data import Dictionary
from torch import Tensor

from fairseq_stack.errors import UserError
from fairseq_stack.modules import (
    NondeterministicStackAttention,
    StackLSTM,
    StackLSTMState,
    StratificationStackAttention,
    SuperpositionStackAttention,
)
from fairseq_stack.ops.nondeterministic import state as nondeterministic_state
from fairseq_stack.tasks._carried import CarriedStates, as_plain, from_plain
from fairseq_stack.tasks._streams import EOS_WORD, Segments, TextStream
from tests.models.building import dictionary_of

LETTERS = "abcdefghijklm"


def stream_of(*lines: str, words: str = LETTERS) -> tuple[TextStream, Dictionary]:
    dictionary = dictionary_of(*words, *([EOS_WORD] if EOS_WORD in " ".join(lines) else []))
    tokens = [dictionary.encode_line(line, add_if_not_exist=False) for line in lines]
    return TextStream("train", tokens, dictionary), dictionary


def words_of(rows: Tensor, dictionary: Dictionary) -> list[str]:
    return [" ".join(dictionary[int(token)] for token in row) for row in rows]


def read(segments: Segments, dictionary: Dictionary) -> list[tuple[list[str], list[str]]]:
    """The words of each row of each segment: what is read, and what is predicted."""
    segments_read = []
    for segment in (segments[number] for number in range(len(segments))):
        assert segment["ntokens"] == int(segment["target"].ne(dictionary.pad()).sum())
        inputs = segment["net_input"]["src_tokens"]
        segments_read.append((words_of(inputs, dictionary), words_of(segment["target"], dictionary)))
    return segments_read


def test_rows_and_segments() -> None:
    """As in the authors' code: rows of 5 tokens, the last one shorter; each begins with the last token of another."""
    stream, dictionary = stream_of("a b c d e f g h i j k l m")
    segments = Segments(stream, batch_size=3, length=2)
    assert read(segments, dictionary) == [
        (["</s> a", "e f", "j k"], ["a b", "f g", "k l"]),
        (["b c", "g h", "l m"], ["c d", "h i", "m </s>"]),
        (["d", "i", "<pad>"], ["e", "j", "<pad>"]),
    ]
    assert segments.num_tokens == len(stream) == 14


@pytest.mark.parametrize(("lines", "expected"), [
    (["a b", "c"], "a b </s> c </s>"),
    ([f"a b {EOS_WORD} c {EOS_WORD}"], f"a b {EOS_WORD} c {EOS_WORD}"),
    ([f"a {EOS_WORD} b", "", f"{EOS_WORD}"], f"a {EOS_WORD} b </s> </s> {EOS_WORD}"),
])  # fmt: skip
def test_sentences_end_once(lines: list[str], expected: str) -> None:
    stream, dictionary = stream_of(*lines)
    before = EOS_WORD if EOS_WORD in expected else "</s>"
    inputs = f"{before} {expected[: expected.rindex(' ')]}"
    assert read(Segments(stream, batch_size=1, length=100), dictionary) == [([inputs], [expected])]


def test_a_short_stream() -> None:
    with pytest.raises(UserError, match="train: expected text, got no line"):
        stream_of()
    with pytest.raises(UserError, match="train: expected at least 5 tokens with --batch-size 5, got 4"):
        Segments(stream_of("a b c")[0], batch_size=5, length=1)


def test_states_are_kept_for_an_update() -> None:
    states = CarriedStates()
    assert states.before(0, update=0) is None
    for segment in (1, 2, 3):
        states.keep(segment, f"before {segment}")
    assert [states.before(segment, update=0) for segment in (1, 2, 0)] == ["before 1", "before 2", None]
    assert states.before(3, update=1) == "before 3"
    assert states.latest == (3, "before 3")
    with pytest.raises(KeyError):
        states.before(2, update=1)


def model_of(*stacks: str) -> StackLSTM:
    made = {
        "sup": lambda: SuperpositionStackAttention(4, 2, output=False, bias=True),
        "strat": lambda: StratificationStackAttention(4, 2, output=False, bias=True),
        "nd": lambda: NondeterministicStackAttention(4, 2, 2, 2, output=False, bias=True),
    }
    return StackLSTM(3, 4, [made[name]() for name in stacks]).double()


def tensors_of(plain: Any) -> list[Tensor]:
    if isinstance(plain, Tensor):
        return [plain]
    items = plain.values() if isinstance(plain, dict) else plain if isinstance(plain, list) else []
    return [tensor for item in items for tensor in tensors_of(item)]


def state_after(model: StackLSTM, inputs: Tensor) -> StackLSTMState:
    return model(inputs, model.initial_state(len(inputs)))[1].detach()


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "pytorch"])
def test_states_are_saved_and_restored(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not compiled:
        monkeypatch.setattr(nondeterministic_state, "library", lambda: None)
    model, inputs = model_of("sup", "strat", "nd"), torch.randn(2, 7, 3, dtype=torch.float64)
    state = state_after(model, inputs)
    plain = as_plain(state)
    assert all(tensor.untyped_storage().nbytes() == tensor.nbytes for tensor in tensors_of(plain))
    saved = io.BytesIO()
    torch.save(plain, saved)
    saved.seek(0)
    plain = torch.load(saved, weights_only=True)
    restored = from_plain(plain, like=state_after(model, inputs[:, :1]))
    expected, continued = (model(inputs, start)[0] for start in (state, restored))
    assert torch.equal(continued, expected)


@pytest.mark.parametrize(("saved", "model"), [("sup", "strat"), ("sup", "nd"), ("", "sup"), ("sup", "")])
def test_a_state_of_another_model(saved: str, model: str) -> None:
    inputs = torch.randn(2, 7, 3, dtype=torch.float64)
    first, second = (state_after(model_of(*filter(None, [name])), inputs) for name in (saved, model))
    with pytest.raises(UserError, match="begin an epoch with --reset-dataloader"):
        from_plain(as_plain(first), like=second)


def test_a_state_of_other_kernels() -> None:
    model, inputs = model_of("nd"), torch.randn(2, 3, 3, dtype=torch.float64)
    state = state_after(model, inputs)
    plain = as_plain(state)
    if "instruction_set" not in plain["stacks"][0]["columns"]:
        pytest.skip("there are no compiled kernels")
    plain["stacks"][0]["columns"]["instruction_set"] = "mmx"
    with pytest.raises(UserError, match=r"expected '.*', got 'mmx'"):
        from_plain(plain, like=state)
