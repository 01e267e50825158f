"""Parses of strings by a syntactic language model: a beam of the best ones."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from fairseq_stack.modules.pushdown_transformer import PushdownState, PushdownTransformer


@dataclass(frozen=True, eq=False)
class Parses:
    """The best parses of a string that a beam has found, the best first.

    Probabilities are in float64. A prefix, which continues after its words, has n surprisals: none for the end.

    Attributes:
        attachments: r_1, ..., r_n of each, (K, n).
        log_probabilities: log p(x, y) of each, (K,), with the end of the string.
        are_trees: whether each is one tree over all words, (K,). The model may also leave several side by side.
        surprisals: -log p(x_k | x_{<k}) of each word and of the end, (n + 1,), where the parses before the word have
            the weights that they have in the beam. They are of a distribution of the next word.
        telescoping_surprisals: how much more improbable the string is with each word and with the end, (n + 1,). They
            sum to -log p(x), and contain the probability of parses that the beam has left out.
        next_words: log p of each symbol as the next one, after each word and before the first, (n + 1, V), with the
            weights of ``surprisals``; None unless it is wanted.
    """

    attachments: Tensor
    log_probabilities: Tensor
    are_trees: Tensor
    surprisals: Tensor
    telescoping_surprisals: Tensor
    next_words: Tensor | None

    @property
    def log_probability(self) -> Tensor:
        """log of the sum of p(x, y) over these parses, a lower bound of log p(x)."""
        return self.log_probabilities.logsumexp(0)


@torch.no_grad()
def parse_all(
    model: PushdownTransformer,
    words: Tensor,
    *,
    beam_size: int,
    legal_only: bool = True,
    are_prefixes: bool = False,
    keep_next_words: bool = False,
) -> list[Parses]:
    """The best parses of strings of the same length, by beam search (Section 3.3 of Murty et al., 2023).

    All hypotheses have the same number of words, so they are compared by log p(x, y) of what they have.

    Args:
        model: in evaluation mode.
        words: the strings, (B, n), without ROOT and their ends.
        beam_size: how many hypotheses of a string are kept, at least 1; n words have at most Catalan(n) parses.
        legal_only: see :meth:`PushdownTransformer.next_attachments`. Otherwise illegal attachments have a share of the
            probability, which strings lack.
        are_prefixes: whether the strings continue, in which case their ends are not scored.
        keep_next_words: whether ``next_words`` of the parses is wanted.

    Raises:
        ValueError: ``words`` is not a LongTensor (B, n), or ``beam_size`` is below 1.
    """
    if words.dim() != 2 or words.dtype != torch.long:
        raise ValueError(f"words: expected a LongTensor of shape (B, n), got {tuple(words.shape)} of {words.dtype}")
    if beam_size < 1:
        raise ValueError(f"beam_size: expected at least 1, got {beam_size}")
    count, length = words.shape
    symbols = words if are_prefixes else pad(words, (0, 1), value=model.end)
    state = model.initial_state(count)
    attachments = words.new_zeros(count, 1, 0)
    scores = torch.zeros(count, 1, dtype=torch.float64, device=words.device)
    before, after = scores.new_zeros(2, count, symbols.size(1))  # log p, summed over the beam, without and with a word
    next_words = []
    for k, word in enumerate(symbols.unbind(1)):
        log_words = model.next_words(state).unflatten(0, scores.shape)
        with_word = scores + log_words.gather(2, word[:, None, None].expand(*scores.shape, 1)).squeeze(2)
        before[:, k], after[:, k] = scores.logsumexp(1), with_word.logsumexp(1)
        if keep_next_words:
            next_words.append((scores.unsqueeze(2) + log_words).logsumexp(1) - before[:, k : k + 1])
        scores, origins, attached = _best(model, state, word, with_word, beam_size, legal_only)
        past = attachments.gather(1, origins.unsqueeze(2).expand(-1, -1, k))
        attachments = torch.cat([past, attached.unsqueeze(2)], 2)
        first_rows = torch.arange(0, with_word.numel(), with_word.size(1), device=words.device)
        state = state.reorder((first_rows.unsqueeze(1) + origins).flatten())
        if k < length:
            state = model.step(state, word.repeat_interleave(scores.size(1)), attached.flatten())
    are_trees = (state.tape.ends.sum(1) <= 2).view(scores.shape)  # ROOT and, unless there are no words, one constituent
    telescoping = -after.diff(prepend=after.new_zeros(count, 1))
    log_next = torch.stack(next_words, 1).unbind() if next_words else [None] * count
    columns = (attachments[:, :, :length], scores, are_trees, before - after, telescoping, log_next)
    return [Parses(*row) for row in zip(*columns, strict=True)]


def _best(
    model: PushdownTransformer, state: PushdownState, word: Tensor, with_word: Tensor, beam_size: int, legal_only: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """The best hypotheses with one more word (B,), from the scores (B, K) of those before it and of the word.

    Returns:
        Their scores, the hypotheses that they continue, and what the word attaches to; each (B, K'). A string whose
        probability is 0 or not a number also has legal attachments.
    """
    words = word.repeat_interleave(with_word.size(1))
    legal = model.legal_attachments(state, words).view(len(word), -1)
    log_attached = model.next_attachments(state, words, legal_only=legal_only).unflatten(0, with_word.shape)
    candidates = (with_word.unsqueeze(2) + log_attached).flatten(1)
    lowest = torch.finfo(candidates.dtype).min
    ranks = candidates.nan_to_num(lowest, neginf=lowest).masked_fill(~legal, -math.inf)
    # All strings have as many legal candidates while each parse is kept, and then at least as many as the beam.
    chosen = ranks.topk(min(beam_size, int(legal[0].sum()))).indices
    columns = log_attached.size(2)
    return candidates.gather(1, chosen), chosen // columns, chosen % columns
