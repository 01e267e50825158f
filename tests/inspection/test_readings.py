"""The readings of stacks in many sentences, and their principal components."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from fairseq_stack.errors import UserError
from fairseq_stack.hub.interface import Hub, load
from fairseq_stack.inspection.readings import principal_components, readings
from fairseq_stack.inspection.sentences import sentence_of_text
from fairseq_stack.inspection.stacks import DrivenStack, read_sentence
from fairseq_stack.modules import SuperpositionStackAttention
from tests.helpers import assert_normwise_close
from tests.inspection.checkpoints import write_translation_model


def test_readings_are_what_the_layer_reads(hub: Hub) -> None:
    sentences = [sentence_of_text(hub, "w0 w1", "w1"), sentence_of_text(hub, "w1", "w0 w0 w1")]
    stacks = readings(hub, sentences)
    assert [(x.layer, x.is_automaton) for x in stacks] == [
        (f"{side}.layers.{number}", number == 1) for side in ("encoder", "decoder") for number in range(1, 4)
    ]
    assert [place.symbol for place in stacks[0].places] == ["w0", "w1", "</s>", "w1", "</s>"]
    assert [tuple(place) for place in stacks[3].places] == [
        *((1, 1, "</s>"), (1, 2, "w1")),
        *((2, 1, "</s>"), (2, 2, "w0"), (2, 3, "w0"), (2, 4, "w1")),
    ]
    assert [x.vectors.shape[1] for x in stacks] == [2 * 2 * 3, 4, 3] * 2
    for stack, driven in zip(stacks, read_sentence(hub, sentences[1]), strict=True):
        outputs = driven.stack(driven.inputs[None])[0]
        vectors = stack.vectors[-len(outputs) :].float()
        assert_normwise_close(driven.stack.output(vectors).detach(), outputs.detach(), 1e-6)


def test_named_after_what_is_predicted(hub: Hub) -> None:
    """It is the next word of the decoder; nothing is predicted with the readings of the encoder."""
    stacks = readings(hub, [sentence_of_text(hub, "w0", "w1 w0")], by="prediction")
    assert [x.layer for x in stacks] == ["decoder.layers.1", "decoder.layers.2", "decoder.layers.3"]
    assert [place.symbol for place in stacks[0].places] == ["w1", "w0", "</s>"]


@pytest.mark.parametrize(
    ("has_output", "in_output", "delay"),
    [(True, False, 1), (False, False, 2), (False, True, 1)],
    ids=["attention", "lstm", "lstm-with-reading-in-output"],
)
def test_delay(has_output: bool, in_output: bool, delay: int) -> None:
    """An LSTM gets the reading with the next input, so that it predicts the word after that with it first."""
    stack = SuperpositionStackAttention(4, 3, output=has_output)
    assert DrivenStack("decoder.lstm.stacks.0", ("a",), stack, torch.ones(1, 4), in_output).delay == delay


def test_after_a_word(hub: Hub) -> None:
    sentences = [sentence_of_text(hub, "w0 w1 w0", "w1 w0"), sentence_of_text(hub, "w0", "w0")]
    stacks = readings(hub, sentences, after="w1")
    assert [(x.layer, [place.number for place in x.places]) for x in stacks] == [
        *((f"encoder.layers.{number}", [2, 3, 4]) for number in range(1, 4)),
        *((f"decoder.layers.{number}", [2, 3]) for number in range(1, 4)),
    ]
    only_in_source = readings(hub, [sentence_of_text(hub, "w1", "w0")], after="w1")
    assert [x.layer for x in only_in_source] == ["encoder.layers.1", "encoder.layers.2", "encoder.layers.3"]
    with pytest.raises(UserError, match="no sentence has '#'"):
        readings(hub, sentences, after="#")


def test_each_loop_has_readings(tmp_path: Path) -> None:
    write_translation_model(tmp_path / "data", tmp_path / "checkpoint.pt", "sdpa,sup-4", "--stack-loops=2")
    hub = load(tmp_path / "checkpoint.pt", tmp_path / "data")
    first, second, *in_decoder = read_sentence(hub, sentence_of_text(hub, "w0 w1", "w1"))
    assert (first.layer, second.layer) == ("encoder.layers.1", "encoder.layers.1.loop-2")
    assert [x.layer for x in in_decoder] == ["decoder.layers.1", "decoder.layers.1.loop-2"]
    assert first.stack is second.stack and not torch.equal(first.inputs, second.inputs)


def test_no_stack(hub: Hub) -> None:
    assert readings(hub, []) == []


def test_an_ensemble(hub: Hub, tmp_path: Path) -> None:
    write_translation_model(tmp_path / "data", tmp_path / "checkpoint.pt", "sdpa")
    two = load(f"{tmp_path / 'checkpoint.pt'}:{tmp_path / 'checkpoint.pt'}", tmp_path / "data")
    with pytest.raises(UserError, match="expected one checkpoint, got an ensemble of 2"):
        readings(two, ["w0"])


def test_principal_components() -> None:
    """Points that vary 10 in one direction, 2 in another, and 0 in a third."""
    directions = torch.linalg.qr(torch.randn(3, 3, dtype=torch.float64)).Q.T
    directions *= directions.gather(1, directions.abs().argmax(1, keepdim=True)).sign()
    along = torch.tensor([[5.0, 0], [-5, 0], [0, 1], [0, -1]], dtype=torch.float64)
    vectors = along @ directions[:2] + torch.tensor([1.0, 2, 3])
    coordinates, shares = principal_components(vectors)
    assert_normwise_close(coordinates, along, 1e-12)
    assert_normwise_close(shares, torch.tensor([50 / 52, 2 / 52], dtype=torch.float64), 1e-12)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_fewer_directions_than_two(size: int) -> None:
    line = torch.arange(4, dtype=torch.float64)[:, None].expand(-1, size)
    coordinates, shares = principal_components(line)
    assert_normwise_close(coordinates[:, 0], (line[:, 0] - 1.5) * size**0.5, 1e-12)
    assert coordinates[:, 1].tolist() == [0] * 4
    assert shares.tolist() == pytest.approx([1, 0])
    coordinates, shares = principal_components(torch.ones(3, size, dtype=torch.float64))
    assert not coordinates.any() and not shares.any()
