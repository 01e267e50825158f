"""What a language model says about given strings of symbols, and strings drawn from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from fairseq_stack.errors import UserError
from fairseq_stack.hub.batches import batches_of_lengths
from fairseq_stack.hub.language_model import LanguageModel

if TYPE_CHECKING:
    from fairseq_stack.hub.interface import LanguageModelHub


@dataclass(frozen=True)
class Prediction:
    """What a model predicts in a string of n symbols, for each symbol and the end.

    Attributes:
        log_probabilities: (n + 1,), in nats.
        is_best: (n + 1,), whether the symbol is the one that the model finds most probable.
    """

    log_probabilities: NDArray[np.float64]
    is_best: NDArray[np.bool_]


@dataclass(frozen=True)
class Sample:
    """A string drawn from a model.

    Attributes:
        symbols: the string.
        is_finished: whether the model ended it.
    """

    symbols: tuple[str, ...]
    is_finished: bool


def predictions(
    hub: LanguageModelHub, strings: Sequence[Sequence[str]], *, batch_size: int | None, max_tokens: int | None
) -> Iterator[tuple[int, Prediction]]:
    """Yield for each string its position in ``strings`` and what the model predicts, in any order.

    Args:
        hub: a language model, or an ensemble, whose probabilities are averaged.
        strings: strings of symbols.
        batch_size: the maximum number of strings at a time, or None for any number.
        max_tokens: the maximum number of symbols at a time, with ends and padding (a single string may have more).

    Raises:
        UserError: a string is longer than the model accepts, or has a symbol that the dictionary lacks; or the model
            computes a probability that is not a number, or is 0.
    """
    tokens = [_encoded(hub, string, number) for number, string in enumerate(strings, start=1)]
    return predictions_of_tokens(hub, tokens, batch_size=batch_size, max_tokens=max_tokens)


@torch.no_grad()
def predictions_of_tokens(
    model: LanguageModel, strings: Sequence[Tensor], *, batch_size: int | None, max_tokens: int | None
) -> Iterator[tuple[int, Prediction]]:
    """As :func:`predictions`, for strings of tokens, each with ``</s>`` at its end."""
    for batch in batches_of_lengths(list(map(len, strings)), batch_size, max_tokens):
        targets = padded(model, [strings[number] for number in batch])
        log_probs = model.log_probabilities(targets)
        of_targets = at_targets(log_probs, targets)
        is_best = log_probs.argmax(2).eq(targets).cpu().numpy()
        for row, number in enumerate(batch):
            length = len(strings[number])
            prediction = Prediction(of_targets[row, :length], is_best[row, :length])
            if not np.isfinite(prediction.log_probabilities).all():
                raise UserError(f"the model's probability of a symbol of string {number + 1} is 0 or not a number")
            yield number, prediction


def _encoded(hub: LanguageModelHub, string: Sequence[str], number: int) -> Tensor:
    """The tokens of a string and ``</s>``."""
    dictionary = hub.tgt_dict
    for symbol in string:
        if symbol not in dictionary:
            raise UserError(
                f"string {number} has the symbol {symbol!r}, which the dictionary of the model lacks: "
                "expected strings of the language that the model was trained on"
            )
    return tokens_of(hub, string, number)


def tokens_of(hub: LanguageModelHub, string: Sequence[str], number: int) -> Tensor:
    """The tokens of a string of symbols and ``</s>``; ``number`` is for the error.

    Raises:
        UserError: the string is longer than the model accepts.
    """
    if len(string) >= hub.max_positions:
        raise UserError(
            f"string {number} has {len(string):,} symbols and an end; the model accepts {hub.max_positions:,} tokens: "
            "train it with a larger --tokens-per-sample"
        )
    return torch.tensor([*map(hub.tgt_dict.index, string), hub.tgt_dict.eos()])


def padded(model: LanguageModel, strings: Sequence[Tensor]) -> Tensor:
    """The tokens of strings, (B, n), padded at the end."""
    return pad_sequence(list(strings), batch_first=True, padding_value=model.vocabulary.pad).to(model.device)


def at_targets(log_probs: Tensor, targets: Tensor) -> NDArray[np.float64]:
    """The log-probabilities of targets (B, n), of those of all symbols (B, n, V)."""
    of_targets: NDArray[np.float64] = log_probs.gather(2, targets.unsqueeze(2)).squeeze(2).double().cpu().numpy()
    return of_targets


@torch.no_grad()
def draw_strings(hub: LanguageModelHub, number: int, *, max_length: int, seed: int, batch_size: int) -> list[Sample]:
    """Draw strings symbol by symbol from the model's probabilities (ancestral sampling).

    Each string has its own random numbers, so it does not depend on ``batch_size``.

    Args:
        hub: a language model, or an ensemble, whose probabilities are averaged.
        number: the number of strings.
        max_length: the maximum number of symbols; a string that has not ended then is not finished.
        seed: of the random numbers.
        batch_size: the maximum number of strings at a time.

    Raises:
        UserError: the model does not accept strings of ``max_length``, or computes a probability that is not a number.
    """
    if number == 0:
        return []
    if max_length >= hub.max_positions:
        raise UserError(
            f"samples of {max_length:,} symbols and an end are too long: the model accepts {hub.max_positions:,} tokens"
        )
    generator = torch.Generator().manual_seed(seed)
    places = torch.rand(number, max_length + 1, dtype=torch.float64, generator=generator)
    return [sample for part in places.split(batch_size) for sample in _draw(hub, part.to(hub.device))]


def _draw(hub: LanguageModelHub, places: Tensor) -> list[Sample]:
    """Strings from places (B, max_length + 1) in [0, 1), each of which chooses a symbol."""
    from fairseq.sequence_generator import EnsembleModel  # Scores of strings need no fairseq.

    vocabulary = hub.vocabulary
    model = EnsembleModel(hub.models)
    states: list[dict[str, Any]] = [{} for _ in hub.models]
    rows = torch.arange(len(places), device=places.device)  # of the strings that continue
    tokens = rows.new_full((len(rows), 1), vocabulary.end)
    samples: dict[int, Sample] = {}

    for step in range(places.size(1)):
        log_probs, _ = model.forward_decoder(tokens, [], states)
        chosen = _chosen(log_probs, places[rows, step], vocabulary.pad)
        ends = chosen.eq(vocabulary.end)
        done = ends | (step == places.size(1) - 1)
        for row, string, is_finished in zip(*(x[done].tolist() for x in (rows, tokens[:, 1:], ends)), strict=True):
            samples[row] = Sample(tuple(vocabulary.symbols[token] for token in string), is_finished)
        going_on = (~done).nonzero().flatten()
        if not len(going_on):
            break
        model.reorder_incremental_state(states, going_on)
        rows, tokens = rows[going_on], torch.cat([tokens, chosen.unsqueeze(1)], dim=1)[going_on]
    return [samples[row] for row in range(len(places))]


def _chosen(log_probs: Tensor, places: Tensor, pad: int) -> Tensor:
    """The symbols (B,) at places (B,) in [0, 1) of the distributions (B, V), padding left out."""
    probabilities = log_probs.double().exp()
    probabilities[:, pad] = 0
    cumulative = probabilities.cumsum(1)
    if not cumulative.isfinite().all():
        raise UserError("the model computes a probability that is not a number")
    # The first symbol beyond the place: one of probability 0 is never the first.
    return torch.searchsorted(cumulative, places.unsqueeze(1) * cumulative[:, -1:], right=True).squeeze(1)
