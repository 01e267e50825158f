"""Stack readings in many sentences and their principal components: what a model can distinguish by its stack."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from fairseq_stack.errors import UserError
from fairseq_stack.hub.interface import Hub
from fairseq_stack.inspection.sentences import Sentence, first_place
from fairseq_stack.inspection.stacks import DrivenStack, read_sentence

Named = Literal["input", "prediction"]
"""The label of a reading: the last token before it, or the first word that it helps to predict."""


class Place(NamedTuple):
    """The position of a stack reading.

    Attributes:
        sentence: the number of the sentence, from 1.
        number: of the last token before the reading, from 1.
        symbol: the label of the reading.
    """

    sentence: int
    number: int
    symbol: str


@dataclass(frozen=True, eq=False)
class Readings:
    """The N readings of a stack.

    Attributes:
        layer: the layer's name in the model, such as ``decoder.layers.2``.
        is_automaton: whether it is a nondeterministic stack.
        places: their positions.
        vectors: the readings, (N, d_r), in float64.
    """

    layer: str
    is_automaton: bool
    places: tuple[Place, ...]
    vectors: Tensor

    def components(self) -> tuple[Tensor, Tensor]:
        """The :func:`principal_components` of the readings."""
        return principal_components(self.vectors)

    def as_json(self) -> dict[str, Any]:
        """Where the readings were made, and their principal components."""
        coordinates, shares = self.components()
        points = zip(self.places, coordinates.tolist(), strict=True)
        return {
            "layer": self.layer,
            "size": self.vectors.shape[1],
            "shares_of_variance": shares.tolist(),
            "readings": [{**place._asdict(), "components": point} for place, point in points],
        }


def readings(
    hub: Hub, sentences: Iterable[str | Sentence], *, by: Named = "input", after: str | None = None
) -> list[Readings]:
    """What each stack of a model returns after each token.

    Args:
        hub: what ``from_pretrained`` returns, with one model.
        sentences: what the model reads, as for :func:`fairseq_stack.inspection.stacks.read_sentence`.
        by: the label of a reading: the last token before it; or the first word that it helps to predict, which is the
            next word in attention, and the word after next in an LSTM. After the last word comes ``</s>``;
            encoders are left out.
        after: leave out the readings before the first input of this name.

    Returns:
        The readings of each stack; none for a model without such stacks.

    Raises:
        UserError: see :func:`fairseq_stack.inspection.stacks.read_sentence`; or ``after`` is in no sentence.
    """
    read: dict[str, list[tuple[int, DrivenStack]]] = {}
    for number, sentence in enumerate(sentences, start=1):
        for driven in read_sentence(hub, sentence):
            if by == "input" or driven.predicts:
                read.setdefault(driven.layer, []).append((number, driven))
    stacks = [_readings(layer, of_layer, by, after, hub.src_dict.eos_word) for layer, of_layer in read.items()]
    if stacks and not any(stack.places for stack in stacks):
        raise UserError(f"no sentence has {after!r}")
    return [stack for stack in stacks if stack.places]


@torch.no_grad()
def _readings(layer: str, read: Iterable[tuple[int, DrivenStack]], by: Named, after: str | None, end: str) -> Readings:
    """The readings of one stack in numbered sentences."""
    places: list[Place] = []
    vectors = []
    for sentence, driven in read:
        symbols = driven.symbols
        names = symbols if by == "input" else (*symbols, *[end] * driven.delay)[driven.delay :]
        first = first_place(symbols, after)
        places += [Place(sentence, i + 1, names[i]) for i in range(first, len(symbols))]
        vectors.append(driven.stack.readings_of(driven.inputs[None])[0, first:].flatten(1).double().cpu())
    return Readings(layer, driven.stack.is_automaton, tuple(places), torch.cat(vectors))


def principal_components(vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Vectors (N, d) in the two directions in which they vary the most, and how much of their variance that is.

    Returns:
        Coordinates, (N, 2), relative to the mean; and the shares of the variance, (2,). A direction in which nothing
        varies has the coordinates and the share 0. The sign of each direction is chosen such that its largest element
        is positive.
    """
    centred = vectors - vectors.mean(0)
    _, spread, directions = torch.linalg.svd(centred, full_matrices=False)
    varies = spread > spread.sum() * 1e-12
    spread, directions = spread[varies][:2], directions[varies][:2]
    largest = directions.gather(1, directions.abs().argmax(1, keepdim=True))
    coordinates, shares = vectors.new_zeros(len(vectors), 2), vectors.new_zeros(2)
    coordinates[:, : len(spread)] = centred @ (directions * largest.sign()).T
    if len(spread):
        shares[: len(spread)] = spread.square() / centred.square().sum()
    return coordinates, shares
