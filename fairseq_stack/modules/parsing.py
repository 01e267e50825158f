"""Parses of strings by a syntactic language model: a beam of the best ones, and random strings with their parses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from fairseq_stack.modules.pushdown_transformer import PushdownTransformer


@dataclass(frozen=True, eq=False)
class Parses:
    """The best parses of a string that a beam has found, the best first.

    Attributes:
        attachments: r_1, ..., r_n of each, (K, n).
        log_probabilities: log p(x, y) of each, (K,), with the end of the string.
        are_trees: whether each is one tree over all words, (K,). The model may also leave several side by side.
        surprisals: -log p(x_k | x_{<k}) of each word and of the end, (n + 1,), where the parses before the word have
            the weights that they have in the beam. They are of a distribution of the next word.
        telescoping_surprisals: how much more improbable the string is with each word and with the end, (n + 1,). They
            add up to -log p(x), and contain the probability of parses that the beam has left out.
    """

    attachments: Tensor
    log_probabilities: Tensor
    are_trees: Tensor
    surprisals: Tensor
    telescoping_surprisals: Tensor

    @property
    def log_probability(self) -> Tensor:
        """log of the sum of p(x, y) over these parses, a lower bound of log p(x)."""
        return self.log_probabilities.logsumexp(0)


class Sample(NamedTuple):
    """A random string with its parse.

    Attributes:
        words: without the end of the string.
        attachments: r_1, ..., r_n.
        is_complete: whether the string has ended by itself.
    """

    words: list[int]
    attachments: list[int]
    is_complete: bool


@torch.no_grad()
def parse(model: PushdownTransformer, words: Tensor, *, beam_size: int, legal_only: bool = True) -> Parses:
    """The best parses of a string, by beam search (Section 3.3 of Murty et al., 2023).

    All hypotheses have the same number of words, so they are compared by log p(x, y) of what they have.

    Args:
        model: in evaluation mode.
        words: the string, (n,), without ROOT and its end.
        beam_size: how many hypotheses are kept, at least 1; n words have at most Catalan(n) parses.
        legal_only: see :meth:`PushdownTransformer.next_attachments`. Otherwise illegal attachments have a share of the
            probability, which strings lack.

    Raises:
        ValueError: ``words`` is not a LongTensor (n,), or ``beam_size`` is below 1.
    """
    if words.dim() != 1 or words.dtype != torch.long:
        raise ValueError(f"words: expected a LongTensor of shape (n,), got {tuple(words.shape)} of {words.dtype}")
    if beam_size < 1:
        raise ValueError(f"beam_size: expected at least 1, got {beam_size}")
    state = model.initial_state(1)
    attachments = words.new_zeros(1, 0)
    scores = model.next_words(state).new_zeros(1)
    surprisals, with_words = [], [scores.logsumexp(0)]
    for word in [*words.unbind(), words.new_tensor(model.end)]:
        with_word = scores + model.next_words(state)[:, word]
        surprisals.append(scores.logsumexp(0) - with_word.logsumexp(0))
        with_words.append(with_word.logsumexp(0))
        candidates = with_word.unsqueeze(1) + model.next_attachments(
            state, word.expand(len(scores)), legal_only=legal_only
        )
        scores, chosen = candidates.flatten().topk(min(beam_size, int((candidates > -math.inf).sum())))
        origins, attached = chosen // candidates.size(1), chosen % candidates.size(1)
        attachments, state = torch.cat([attachments[origins], attached.unsqueeze(1)], 1), state.reorder(origins)
        if attachments.size(1) <= len(words):
            state = model.step(state, word.expand(len(scores)), attached)
    are_trees = state.tape.ends.sum(1) <= 2  # ROOT and, unless there are no words, one constituent
    return Parses(attachments[:, :-1], scores, are_trees, torch.stack(surprisals), -torch.stack(with_words).diff())


@torch.no_grad()
def sample(
    model: PushdownTransformer, count: int, *, max_words: int, generator: torch.Generator | None = None
) -> list[Sample]:
    """Random strings with their parses: each word, and then what it attaches to. Parses need not end in one tree.

    Args:
        model: in evaluation mode.
        count: how many strings.
        max_words: strings that are longer are cut here.
        generator: of random numbers.
    """
    state = model.initial_state(count)
    drawn: list[tuple[Tensor, Tensor]] = []
    has_ended = torch.zeros(count, dtype=torch.bool, device=state.hidden.device)
    for k in range(1, max_words + 2):
        log_words = model.next_words(state)
        if model.root != model.end:
            log_words[:, model.root] = -math.inf
        words = torch.multinomial(log_words.exp(), 1, generator=generator).squeeze(1)
        has_ended = has_ended | (words == model.end)
        if k > max_words or bool(has_ended.all()):
            break
        attached = torch.multinomial(model.next_attachments(state, words).exp(), 1, generator=generator).squeeze(1)
        attached = torch.where(has_ended, k, attached)  # What follows the end is cut off.
        drawn.append((torch.where(has_ended, model.end, words), attached))
        state = model.step(state, words, attached)
    return [_until_the_end(drawn, row, model.end, bool(has_ended[row])) for row in range(count)]


def _until_the_end(drawn: list[tuple[Tensor, Tensor]], row: int, end: int, is_complete: bool) -> Sample:
    pairs = [(int(words[row]), int(attached[row])) for words, attached in drawn if words[row] != end]
    return Sample([word for word, _ in pairs], [attached for _, attached in pairs], is_complete)
