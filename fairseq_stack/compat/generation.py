"""Beam search: a sentence gets the same result as alone, whatever else is in its batch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from fairseq_stack.compat.wrapping import wrap_once
from fairseq_stack.errors import UserError

Hypotheses = list[list[dict[str, Tensor]]]


def repeat_no_ngrams() -> None:
    """Let ``--no-repeat-ngram-size`` do what it says without fairseq's CUDA extension.

    fairseq looks for the last tokens of a hypothesis at the end of a buffer that is longer than every hypothesis, so
    it compares padding and forbids nothing. Unnecessary with a fairseq that looks at the end of the hypothesis.
    """
    from fairseq.ngram_repeat_block import NGramRepeatBlock

    NGramRepeatBlock._no_repeat_ngram = _forbid_repeated_ngrams


def _forbid_repeated_ngrams(self: Any, tokens: Tensor, lprobs: Tensor, bsz: int, beam_size: int, step: int) -> Tensor:
    """Forbid, in log-probabilities (B * K, V), each symbol that would repeat an n-gram of its row."""
    num_recent = self.no_repeat_ngram_size - 1
    for row, history in enumerate(tokens[:, 1 : step + 1].tolist()):
        starts = range(step - num_recent)
        recent = history[step - num_recent :]
        repeated = [history[i + num_recent] for i in starts if history[i : i + num_recent] == recent]
        lprobs[row, repeated] = -math.inf
    return lprobs


def search_each_sentence_as_if_alone() -> None:
    """Let fairseq's ``SequenceGenerator`` find for each sentence of a batch what ``--batch-size 1`` finds.

    fairseq computes one maximum length for the batch, from its longest source. With ``--max-len-a`` a sentence may
    therefore get longer hypotheses beside a long sentence than alone. fairseq also forgets ``--min-len`` for a sentence
    whose prefix is shorter than another prefix of the batch. This shim applies to every model in the process, so that
    our models and fairseq's are compared under the same search. Unnecessary with a fairseq that has a maximum length
    for each sentence.
    """
    from fairseq.sequence_generator import SequenceGenerator

    wrap_once(SequenceGenerator, "_generate", _with_own_lengths)
    wrap_once(SequenceGenerator, "_prefix_tokens", _with_own_prefixes)
    wrap_once(SequenceGenerator, "is_finished", _at_own_length)


class OwnLengths(nn.Module):
    """One of fairseq's search strategies, with a maximum length for each sentence. An instance serves one batch.

    From its maximum length on, a sentence has no continuation except EOS. fairseq says which sentences of the batch are
    left, so this strategy knows the maximum length of every row that it gets.

    Args:
        search: the strategy (``fairseq.search.Search``) that selects the candidates.
        max_lengths: maximum number of tokens (B,) of each sentence, EOS not counted, on the CPU.
        eos: index of EOS.
    """

    def __init__(self, search: Any, max_lengths: Tensor, eos: int) -> None:
        super().__init__()
        self.search = search
        self.max_lengths = max_lengths
        self.eos = eos
        self.supports_constraints = search.supports_constraints
        self.stop_on_max_len = search.stop_on_max_len

    def at_limit(self, step: int) -> Tensor:
        """Which sentences (B,) have reached their maximum length after ``step`` tokens."""
        return self.max_lengths <= step

    def step(self, step: int, lprobs: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Select candidates from log-probabilities (B, K, V) as fairseq does; at the maximum length, only EOS.

        Raises:
            UserError: no hypothesis for a sentence at its maximum length has a positive probability.
        """
        at_limit = self.at_limit(step)
        if not at_limit.any():
            return self.search.step(step, lprobs, *args, **kwargs)
        at_limit = at_limit.to(lprobs.device)
        end = lprobs[..., self.eos].clone()
        lprobs.masked_fill_(at_limit[:, None, None], -math.inf)
        lprobs[..., self.eos] = end
        scores, symbols, beams = self.search.step(step, lprobs, *args, **kwargs)
        if not self.stop_on_max_len and scores[at_limit].isneginf().all(dim=1).any():
            raise UserError(
                f"the search found no output of up to {step} tokens with a positive probability: expected a model "
                "whose outputs are numbers, and a prefix, constraints and a maximum length (--max-len-a, --max-len-b) "
                "that can be met"
            )
        return scores, symbols, beams

    def prune_sentences(self, batch_idxs: Tensor) -> None:
        """Keep only these sentences of the batch."""
        self.max_lengths = self.max_lengths[batch_idxs.cpu()]
        self.search.prune_sentences(batch_idxs)

    def init_constraints(self, batch_constraints: Tensor | None, beam_size: int) -> None:
        self.search.init_constraints(batch_constraints, beam_size)

    def update_constraints(self, active_hypos: Tensor) -> None:
        self.search.update_constraints(active_hypos)

    def set_src_lengths(self, src_lengths: Tensor) -> None:
        self.search.set_src_lengths(src_lengths)


def _with_own_lengths(generate: Callable[..., Hypotheses]) -> Callable[..., Hypotheses]:
    def generate_with_own_lengths(
        self: Any, sample: dict[str, Any], prefix_tokens: Tensor | None = None, **kwargs: Any
    ) -> Hypotheses:
        source = sample["net_input"].get("src_tokens")
        if source is None or source.dim() != 2:  # speech
            return generate(self, sample, prefix_tokens, **kwargs)
        if prefix_tokens is not None and _is_left_padded(sample.get("target"), self.pad):
            raise UserError("--prefix-size needs targets that are padded on the right: leave out --left-pad-target")
        max_lengths = _max_lengths(self, sample["net_input"])
        before = self.search, self.max_len_a, self.max_len_b
        self.search = OwnLengths(self.search, max_lengths, self.eos)
        self.max_len_a, self.max_len_b = 0, int(max_lengths.max())
        try:
            return generate(self, sample, prefix_tokens, **kwargs)
        finally:
            self.search, self.max_len_a, self.max_len_b = before

    return generate_with_own_lengths


def _is_left_padded(target: Tensor | None, pad: int) -> bool:
    return target is not None and bool(target[:, 0].eq(pad).any())


def _max_lengths(generator: Any, net_input: dict[str, Tensor]) -> Tensor:
    """The maximum number of tokens (B,), EOS not counted, that fairseq allows each sentence alone."""
    source = net_input["src_tokens"]
    is_token = source.ne(generator.pad)
    if generator.match_source_len:
        lengths = net_input.get("src_lengths")
        return ((is_token & source.ne(generator.eos)).sum(dim=1) if lengths is None else lengths).cpu()
    sizes = is_token.sum(dim=1).tolist()
    wanted = [int(generator.max_len_a * size + generator.max_len_b) for size in sizes]
    max_lengths = torch.tensor(wanted).clamp(max=generator.max_len - 1)
    shortest = int(max_lengths.min())
    if shortest < generator.min_len:
        raise UserError(
            f"--min-len {generator.min_len} is more than the maximum length of a sentence, {shortest}, which "
            "--max-len-a, --max-len-b and the positions of the decoder determine: raise it or lower --min-len"
        )
    return max_lengths


def _with_own_prefixes(force_prefix: Callable[..., tuple[Tensor, ...]]) -> Callable[..., tuple[Tensor, ...]]:
    def force_own_prefix(
        self: Any,
        step: int,
        lprobs: Tensor,
        scores: Tensor,
        tokens: Tensor,
        prefix_tokens: Tensor,
        beam_size: int,
    ) -> tuple[Tensor, ...]:
        if isinstance(self.search, OwnLengths):
            at_limit = self.search.at_limit(step).to(prefix_tokens.device)
            prefix_tokens = prefix_tokens.masked_fill(at_limit[:, None], self.pad)
            free = prefix_tokens[:, step].eq(self.pad).repeat_interleave(beam_size)
            if step < self.min_len:
                lprobs[free, self.eos] = -math.inf
            if self.token_indices_to_suppress is not None:
                lprobs[free.nonzero(), self.token_indices_to_suppress] = -math.inf
        return force_prefix(self, step, lprobs, scores, tokens, prefix_tokens, beam_size)

    return force_own_prefix


def _at_own_length(is_finished: Callable[..., bool]) -> Callable[..., bool]:
    def is_finished_at_own_length(
        self: Any, step: int, unfin_idx: int, max_len: int, finalized_sent_len: int, beam_size: int
    ) -> bool:
        if isinstance(self.search, OwnLengths) and bool(self.search.at_limit(step)[unfin_idx]):
            max_len = step
        return is_finished(self, step, unfin_idx, max_len, finalized_sent_len, beam_size)

    return is_finished_at_own_length
