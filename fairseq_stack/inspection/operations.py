"""What a stack does at each symbol, on average over many sentences."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fairseq_stack.errors import UserError
from fairseq_stack.hub.interface import Hub
from fairseq_stack.inspection.sentences import Sentence, first_place
from fairseq_stack.inspection.stacks import inspect_stacks
from fairseq_stack.modules import InspectedStack
from fairseq_stack.modules.inspected import with_none


@dataclass(frozen=True, eq=False)
class MeanOperations:
    """The mean of what a stack does over N inputs, and over those of each of K symbols.

    Attributes:
        layer: the layer's name in the model, such as ``decoder.layers.2``.
        is_automaton: whether it is a nondeterministic stack.
        names: the O operations, such as push, replace and pop.
        unit: what the means are of: probabilities or strengths.
        mean: over all inputs, (O,).
        symbols: the inputs that occur, the most frequent one first.
        counts: how often each symbol occurs; the sum is N.
        means: over the inputs of each symbol, (K, O).
    """

    layer: str
    is_automaton: bool
    names: tuple[str, ...]
    unit: str
    mean: Tensor
    symbols: tuple[str, ...]
    counts: tuple[int, ...]
    means: Tensor

    def as_json(self) -> dict[str, Any]:
        """The numbers, with None for means that are not known."""
        rows = zip(self.symbols, self.counts, self.means, strict=True)
        return {
            "layer": self.layer,
            "inputs": sum(self.counts),
            "mean": self._named(self.mean),
            "symbols": [
                {"symbol": symbol, "inputs": count, "mean": self._named(means)} for symbol, count, means in rows
            ],
        }

    def _named(self, means: Tensor) -> dict[str, float | None]:
        return dict(zip(self.names, with_none(means.tolist()), strict=True))


def mean_operations(hub: Hub, sentences: Iterable[str | Sentence], *, after: str | None = None) -> list[MeanOperations]:
    """What each stack of a model does at each symbol.

    For a nondeterministic stack, these are the posterior probabilities of the operations given the whole sentence.

    Args:
        hub: what ``from_pretrained`` returns, with one model.
        sentences: what the model reads, as for :func:`fairseq_stack.inspection.stacks.read_sentence`.
        after: leave out what it does before the first input of this name.

    Returns:
        The operations of each stack that reads this name; none for a model without stacks whose kinds say what they do.

    Raises:
        UserError: see :func:`fairseq_stack.inspection.stacks.read_sentence`; or ``after`` is in no sentence.
    """
    read: dict[str, list[tuple[InspectedStack, int]]] = {}
    for sentence in sentences:
        for stack in inspect_stacks(hub, sentence, num_runs=0):
            read.setdefault(stack.layer, []).append((stack, first_place(stack.inputs, after)))
    with_inputs = [stacks for stacks in read.values() if any(start < len(stack.inputs) for stack, start in stacks)]
    if read and not with_inputs:
        raise UserError(f"no sentence has {after!r}")
    return [_mean_operations(stacks) for stacks in with_inputs]


def _mean_operations(stacks: list[tuple[InspectedStack, int]]) -> MeanOperations:
    """The operations of one stack in many sentences, in each from an input on."""
    (first, _), *_ = stacks
    operations = torch.cat([stack.operations()[start:] for stack, start in stacks])
    places: dict[str, list[int]] = {}
    for place, symbol in enumerate(symbol for stack, start in stacks for symbol in stack.inputs[start:]):
        places.setdefault(symbol, []).append(place)
    symbols = sorted(places, key=lambda symbol: -len(places[symbol]))
    return MeanOperations(
        first.layer,
        first.is_automaton,
        tuple(first.actions),
        first.unit,
        operations.mean(0),
        tuple(symbols),
        tuple(len(places[symbol]) for symbol in symbols),
        torch.stack([operations[places[symbol]].mean(0) for symbol in symbols]),
    )
