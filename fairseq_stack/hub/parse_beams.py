"""The words of sentences under a model that also parses them, summed over a beam of parses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from fairseq_stack.errors import UserError
from fairseq_stack.hub.language_model import LanguageModel
from fairseq_stack.modules import Parses, PushdownTransformer, parse_all

BEAM_SIZE = 50
"""How many parses of a sentence are kept by default."""

Scores: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64] | None]
"""Of n tokens: the log-probabilities of each and of the end, and, if they are wanted, that a word ends before each."""


@dataclass(frozen=True)
class Beam:
    """How a model that parses scores sentences.

    Attributes:
        size: number of parses kept.
        telescoping: whether surprisals are telescoping ones.
        network: the network of the model.
    """

    size: int
    telescoping: bool
    network: PushdownTransformer


def has_trained_head(model: Any, criterion: Any) -> bool:
    """Whether a model has an attachment head, and the criterion trains it."""
    network = getattr(getattr(model, "decoder", None), "network", None)
    return isinstance(network, PushdownTransformer) and getattr(criterion, "_name", "") != "operation_cross_entropy"


def network_of(hub: Any) -> PushdownTransformer:
    """The network of a :class:`~fairseq_stack.hub.interface.Hub` of a model that parses.

    Raises:
        UserError: the hub holds an ensemble.
    """
    if len(hub.models) != 1:
        raise UserError("the models of an ensemble have different parses: name one checkpoint")
    network: PushdownTransformer = hub.models[0].decoder.network
    return network


def beam_of(model: LanguageModel, size: int | None, telescoping: bool) -> Beam | None:
    """The beam of a model that parses, with :data:`BEAM_SIZE` parses if none are named; None for other models.

    Raises:
        UserError: another model is given a beam; or the model is an ensemble.
    """
    if model.parses_sentences:
        return Beam(BEAM_SIZE if size is None else size, telescoping, network_of(model))
    flags = ["--beam"] * (size is not None) + ["--telescoping"] * telescoping
    if flags:
        raise UserError(f"{', '.join(flags)}: the model does not parse sentences, so it has no beam; leave this out")
    return None


def scores_of_parses(targets: Tensor, begins: Tensor | None, beam: Beam) -> list[Scores]:
    """The scores of strings of one length, (B, n + 1), with their ends; ``begins``: the tokens that begin words."""
    keep = begins is not None
    beams = parse_all(beam.network, targets[:, :-1], beam_size=beam.size, keep_next_words=keep)
    return [_scores(parses, begins, beam.telescoping) for parses in beams]


def _scores(parses: Parses, begins: Tensor | None, telescoping: bool) -> Scores:
    surprisals = parses.telescoping_surprisals if telescoping else parses.surprisals
    log_probs = -surprisals.cpu().numpy()
    if begins is None or parses.next_words is None:
        return log_probs, None
    # Telescoping ones are relative to all parses before the word, and not to those that the beam has kept.
    ends = parses.next_words[:, begins].logsumexp(1) + (parses.surprisals - surprisals)
    return log_probs, ends.cpu().numpy()
