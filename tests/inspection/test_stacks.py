"""What stacks do, in numbers and as text, for stacks whose operations are known."""

from __future__ import annotations

import json
import math

import pytest
import torch
from torch import Tensor, nn

from fairseq_stack.hub.interface import Hub
from fairseq_stack.inspection.operations import mean_operations
from fairseq_stack.inspection.readings import readings
from fairseq_stack.inspection.sentences import sentence_of_text
from fairseq_stack.inspection.stacks import DrivenStack, inspect_stacks
from fairseq_stack.inspection.texts import contents_as_graphviz, spelt, transitions_as_tsv
from fairseq_stack.modules import (
    InspectedAutomaton,
    InspectedStack,
    InspectedStratification,
    NondeterministicStackAttention,
    StackAttention,
    StratificationStackAttention,
    SuperpositionStackAttention,
    SymbolStackAttention,
)
from tests.helpers import assert_normwise_close

SYMBOLS = ("a", "b_c", "#", '"d\\')
PUSH, NOOP, POP = 0, 1, 2


def driven(stack: StackAttention, actions: Tensor) -> DrivenStack:
    """A stack that makes these actions (n, d_a), one after the other."""
    length = len(actions)
    stack.double()
    stack.actions = nn.Linear(length, actions.shape[1], bias=False, dtype=torch.float64)
    stack.actions.weight = nn.Parameter(actions.T.contiguous())
    return DrivenStack("decoder.layers.1", SYMBOLS[:length], stack, torch.eye(length, dtype=torch.float64))


def superposition(*operations: int, depth_limit: int | None = None) -> InspectedStack:
    actions = torch.full((len(operations), 3), -1e4, dtype=torch.float64)
    actions[range(len(operations)), list(operations)] = 0
    (stack,) = driven(SuperpositionStackAttention(4, 3, depth_limit=depth_limit), actions).inspected()
    return stack


def automaton(*, window: int | None = None, num_runs: int = 1, std: float = 0.0) -> InspectedAutomaton:
    """Push 1, push 1, replace by 0, pop, all in state 0 and with a weight of e^9; other weights are about 1."""
    stack = NondeterministicStackAttention(4, 2, 2, 3, window=window)
    actions = torch.randn(4, stack.actions.out_features, dtype=torch.float64) * std
    push, replace, pop = stack.transitions(actions)
    push[0, 0, 0, 0, 1] = push[1, 0, 1, 0, 1] = replace[2, 0, 1, 0, 0] = pop[3, 0, 0, 0] = 9
    (inspected,) = driven(stack, actions).inspected(num_runs)
    assert isinstance(inspected, InspectedAutomaton)
    return inspected


def test_superposition() -> None:
    inspected = superposition(PUSH, PUSH, NOOP, POP)
    assert inspected.operations().tolist() == [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert inspected.weights.tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0]]
    assert inspected.pushed == SYMBOLS
    assert inspected.as_json()["actions"]["pop"] == [0, 0, 0, 1]


def test_superposition_of_limited_depth() -> None:
    inspected = superposition(PUSH, PUSH, POP, depth_limit=1)
    assert inspected.weights.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0]]


def test_stratification() -> None:
    pop, push = torch.tensor([0.5, 0.25, 0.75, 0.5]), torch.tensor([0.5, 0.75, 0.25, 0.5])
    actions = torch.stack([pop, push], 1).double().logit()
    (inspected,) = driven(StratificationStackAttention(4, 3), actions).inspected()
    assert isinstance(inspected, InspectedStratification)
    assert_normwise_close(inspected.operations(), torch.stack([pop, push], 1), 1e-12)
    strengths = [[0.5, 0, 0, 0], [0.25, 0.75, 0, 0], [0.25, 0, 0.25, 0], [0, 0, 0, 0.5]]
    assert_normwise_close(inspected.strengths, torch.tensor(strengths), 1e-12)
    assert_normwise_close(inspected.weights, torch.tensor(strengths), 1e-12)  # at most 1 in all
    assert inspected.as_json()["strengths"] == inspected.strengths.tolist()


def test_automaton() -> None:
    inspected = automaton(num_runs=2)
    best, second = inspected.runs
    assert [spelt(step) for step in best.steps] == [
        "push q0,0 -> q0,0 1",
        "push q0,1 -> q0,1 1",
        "replace q0,1 -> q0,0",
        "pop q0,0 -> q0",
    ]
    assert best.log_weight == 36 > second.log_weight
    assert inspected.size == (2, 2)
    assert inspected.pushed == ("bottom", *SYMBOLS)
    assert (
        inspected.shares()[0] == pytest.approx(math.exp(36 - inspected.log_partition)) and inspected.shares()[0] > 0.98
    )
    assert inspected.operations().argmax(1).tolist() == [0, 0, 1, 2]
    assert_normwise_close(inspected.operations().sum(1), torch.ones(4), 1e-12)
    given_top = inspected.given_top()
    assert_normwise_close(given_top.push[0, 0, 0, 0, 1], math.exp(9) / (math.exp(9) + 9), 1e-12)
    assert given_top.pop[2, 1, 1].tolist() == pytest.approx([0.1, 0.1])
    assert [x.number for x in inspected.likely_transitions(0.9)] == [1, 2, 3, 4]


def test_limited_memory() -> None:
    """Only the last two vectors have weights, and the bottom counts as pushed at step 0."""
    inspected = automaton(window=2, std=1.0)
    assert torch.equal(inspected.weights.ne(0), torch.ones(4, 5).tril(1).triu(0).bool())
    assert inspected.window == 2 and inspected.runs == ()
    assert_normwise_close(inspected.operations().sum(1), torch.ones(4), 1e-12)
    assert automaton(window=9, std=1.0).runs != ()


@pytest.mark.parametrize("window", [None, 2, 4])
def test_original_bottom(window: int | None) -> None:
    """Its first step pushes, which is a replacement here; JSON has no number for a weight of 0.

    What the first step pushes is the bottom of the stack, and a limited memory forgets it as if pushed at step 1.
    """
    stack = SymbolStackAttention(4, 2, 2, original_bottom=True, window=window)
    (inspected,) = driven(stack, torch.zeros(4, stack.actions.out_features, dtype=torch.float64)).inspected()
    assert isinstance(inspected, InspectedAutomaton)
    json.dumps(inspected.as_json(), allow_nan=False)
    pushed = torch.cat([inspected.weights[:, :1] + inspected.weights[:, 1:2], inspected.weights[:, 2:]], dim=1)
    assert torch.equal(pushed.ne(0), torch.ones(4, 4).tril(0).triu(1 - (window or 4)).bool())
    assert_normwise_close(pushed.sum(1), torch.ones(4), 1e-12)
    if window is None:
        assert_normwise_close(inspected.operations()[0], torch.tensor([0.0, 1.0, 0.0]), 1e-12)
    else:
        assert inspected.operations().isnan().all()


def test_undefined_weights() -> None:
    stack = NondeterministicStackAttention(4, 2, 2, 3)
    (inspected,) = driven(
        stack, torch.full((4, stack.actions.out_features), torch.nan, dtype=torch.float64)
    ).inspected()
    assert isinstance(inspected, InspectedAutomaton)
    assert inspected.runs == () and inspected.weights.isnan().all()


def test_json() -> None:
    inspected = json.loads(json.dumps(automaton().as_json(), allow_nan=False))
    assert list(inspected) == ["layer", "inputs", "weights", "log_weights", "posterior", "log_partition", "runs"]
    (run,) = inspected["runs"]
    assert run["steps"][0] == {"operation": "push", "source": [0, 0], "state": 0, "symbol": 1}
    assert run["stacks"][2] == [[0, 0], [1, 1], [1, 2]]


def test_transitions_as_text() -> None:
    head, *lines = transitions_as_tsv(automaton(), 0.9).splitlines()
    assert head.split("\t") == ["number", "input", "transition", "probability"]
    assert [line.split("\t")[:3] for line in lines[:3]] == [
        ["1", "a", "push q0,0 -> q0,0 1"],
        ["2", "b_c", "push q0,1 -> q0,1 1"],
        ["3", "#", "replace q0,1 -> q0,0"],
    ]


def test_contents_as_a_graph() -> None:
    """After three inputs two symbols lie on the bottom; quotes and backslashes of inputs are escaped."""
    inspected = automaton()
    text = contents_as_graphviz(inspected.contents(3, 0.5), inspected.inputs[:3])
    edges = [line for line in text.splitlines() if "->" in line]
    assert [line.split(" [")[0].strip() for line in edges] == [
        "n0_0_0 -> n1_0_0",
        "n1_0_0 -> n2_0_1",
        "n2_0_1 -> n4_0_0",
    ]
    assert r'label="1 (a)\n1.00"' in edges[1]
    assert text.count("doublecircle") == 1
    quoted = contents_as_graphviz(inspected.contents(4, 0.5), inspected.inputs)
    assert r"after 4: \"d\\" in quoted
    named = contents_as_graphviz(inspected.contents(4, 0.5), [*inspected.inputs[:3], r"\n"])
    assert r"\nafter 4: \\n" in named


def test_weights_of_a_checkpoint(hub: Hub) -> None:
    """They are shares of what has been read, and no hook is left."""

    def stack_weights(*sentence: str) -> list[InspectedStack]:
        return [
            stack for stack in inspect_stacks(hub, sentence_of_text(hub, *sentence), num_runs=0) if stack.is_automaton
        ]

    encoder, decoder = stack_weights("w0 w1", "w0 w1 w1 w0")
    assert (encoder.layer, encoder.inputs) == ("encoder.layers.1", ("w0", "w1", "</s>"))
    assert (decoder.layer, decoder.inputs) == ("decoder.layers.1", ("</s>", "w0", "w1", "w1", "w0"))
    assert encoder.weights.shape == (3, 4)
    weights = decoder.weights
    assert weights.shape == (5, 6) and (weights >= 0).all() and not weights[:, 1:].triu(1).any()
    assert_normwise_close(weights.sum(1), torch.ones(5), 1e-12)
    _, other = stack_weights("w0 w1", "w0 w1 w0 w0")
    assert_normwise_close(other.weights[:3], weights[:3], 1e-6)
    assert not torch.allclose(other.weights[3:], weights[3:])
    _, another = stack_weights("w1 w0", "w0 w1 w1 w0")
    assert not torch.allclose(another.weights, weights), "the source does not matter"
    _, of_beam_search = stack_weights("w0 w1")
    _, translated = stack_weights("w0 w1", hub.translate("w0 w1", beam=4, max_len_a=1.5, max_len_b=10))
    assert torch.equal(of_beam_search.weights, translated.weights)
    assert not any(module._forward_pre_hooks for module in hub.models[0].modules())


def test_a_kind_that_does_not_say_what_it_does(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is left out, which is said once; its readings can be seen all the same."""
    monkeypatch.setattr(SuperpositionStackAttention, "inspected", StackAttention.inspected)
    sentences = [sentence_of_text(hub, text, "w0") for text in ("w0 w1", "w1")]
    stacks = mean_operations(hub, sentences)
    layers = [f"{side}.layers" for side in ("encoder", "decoder")]
    assert [stack.layer for stack in stacks] == [f"{layer}.{n}" for layer in layers for n in (1, 3)]
    lines = capsys.readouterr().err.splitlines()
    left_out = "is left out: SuperpositionStackAttention does not say what its stack does"
    assert [line.partition(" (")[0] for line in lines] == [f"{layer}.2 {left_out}" for layer in layers]
    assert len(readings(hub, sentences)) == 6
