"""What stacks do at each symbol, on average over many sentences."""

from __future__ import annotations

import pytest
import torch

from fairseq_stack.errors import UserError
from fairseq_stack.hub.interface import Hub
from fairseq_stack.inspection.operations import mean_operations
from fairseq_stack.inspection.sentences import sentence_of_text
from fairseq_stack.inspection.stacks import inspect_stacks
from tests.helpers import assert_normwise_close


def test_means_are_of_what_the_stacks_do(hub: Hub) -> None:
    sentences = [sentence_of_text(hub, "w0 w1 w1", "w1"), sentence_of_text(hub, "w1", "w0 w0 w1")]
    layers = mean_operations(hub, sentences)
    stacks = [inspect_stacks(hub, sentence) for sentence in sentences]
    assert [stack.layer for stack in layers] == [stack.layer for stack in stacks[0]]
    assert [stack.is_automaton for stack in layers] == [True, False, False] * 2
    assert [stack.names for stack in layers[:3]] == [
        ("push", "replace", "pop"),
        ("push", "no-op", "pop"),
        ("pop", "push"),
    ]
    assert [stack.unit for stack in layers[:3]] == ["probability", "probability", "strength"]
    assert (layers[0].symbols, layers[0].counts) == (("w1", "</s>", "w0"), (3, 2, 1))
    assert (layers[3].symbols, layers[3].counts) == (("</s>", "w1", "w0"), (2, 2, 2))
    for layer, first, second in zip(layers, *stacks, strict=True):
        operations = torch.cat([first.operations(), second.operations()])
        inputs = first.inputs + second.inputs
        assert_normwise_close(layer.mean, operations.mean(0), 1e-12)
        for symbol, mean in zip(layer.symbols, layer.means, strict=True):
            places = [place for place, name in enumerate(inputs) if name == symbol]
            assert_normwise_close(mean, sum(operations[place] for place in places) / len(places), 1e-12)


def test_after_a_word(hub: Hub) -> None:
    sentences = [sentence_of_text(hub, "w0 w1 w0", "w1 w0"), sentence_of_text(hub, "w0", "w0")]
    first, *_ = mean_operations(hub, sentences, after="w1")
    (stack, *_) = inspect_stacks(hub, sentences[0])
    assert (first.symbols, first.counts) == (("w1", "w0", "</s>"), (1, 1, 1))
    assert_normwise_close(first.mean, stack.operations()[1:].mean(0), 1e-12)
    only_in_source = mean_operations(hub, [sentence_of_text(hub, "w1", "w0")], after="w1")
    assert [x.layer for x in only_in_source] == ["encoder.layers.1", "encoder.layers.2", "encoder.layers.3"]
    with pytest.raises(UserError, match="no sentence has '#'"):
        mean_operations(hub, sentences, after="#")
