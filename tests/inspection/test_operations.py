"""What stacks do at each symbol, on average over many sentences."""

from __future__ import annotations

import pytest
import torch

from fairseq_stack.hub.interface import Hub
from fairseq_stack.inspection.operations import mean_operations
from fairseq_stack.inspection.sentences import sentence_of_text
from fairseq_stack.inspection.stacks import inspect_stacks
from fairseq_stack.inspection.texts import operations_as_tsv
from tests.helpers import assert_normwise_close


def test_means_are_of_what_the_stacks_do(hub: Hub) -> None:
    sentences = [sentence_of_text(hub, "w0 w1 w1", "w1"), sentence_of_text(hub, "w1", "w0 w0 w1")]
    found = mean_operations(hub, sentences)
    stacks = [inspect_stacks(hub, sentence) for sentence in sentences]
    assert [stack.layer for stack in found] == [stack.layer for stack in stacks[0]]
    assert [stack.is_automaton for stack in found] == [True, False, False] * 2
    assert [stack.names for stack in found[:3]] == [
        ("push", "replace", "pop"),
        ("push", "no-op", "pop"),
        ("pop", "push"),
    ]
    assert [stack.unit for stack in found[:3]] == ["probability", "probability", "strength"]
    assert (found[0].symbols, found[0].counts) == (("w1", "</s>", "w0"), (3, 2, 1))
    assert (found[3].symbols, found[3].counts) == (("</s>", "w1", "w0"), (2, 2, 2))
    for own, first, second in zip(found, *stacks, strict=True):
        operations = torch.cat([first.operations(), second.operations()])
        inputs = first.inputs + second.inputs
        assert_normwise_close(own.mean, operations.mean(0), 1e-12)
        for symbol, mean in zip(own.symbols, own.means, strict=True):
            places = [place for place, name in enumerate(inputs) if name == symbol]
            assert_normwise_close(mean, sum(operations[place] for place in places) / len(places), 1e-12)


def test_numbers_and_table(hub: Hub) -> None:
    sup, strat = mean_operations(hub, [sentence_of_text(hub, "w0 w1 w1", "w1")])[1:3]
    numbers = sup.as_json()
    assert (numbers["layer"], numbers["inputs"]) == ("encoder.layers.2", 4)
    assert numbers["mean"] == dict(zip(("push", "no-op", "pop"), sup.mean.tolist(), strict=True))
    assert [(row["symbol"], row["inputs"]) for row in numbers["symbols"]] == [("w1", 2), ("w0", 1), ("</s>", 1)]
    assert numbers["symbols"][0]["mean"]["pop"] == sup.means[0, 2].item()
    rows = [line.split("\t") for line in operations_as_tsv([sup, strat]).splitlines()]
    assert rows[0] == ["layer", "symbol", "inputs", "push", "no-op", "pop"]
    assert rows[1][:3] == ["encoder.layers.2", "", "4"] and float(rows[1][4]) == pytest.approx(
        sup.mean[1].item(), abs=1e-4
    )
    assert rows[6][:3] == ["encoder.layers.3", "w1", "2"] and rows[6][4] == ""
    assert float(rows[6][3]) == pytest.approx(strat.means[0, 1].item(), abs=1e-4)
