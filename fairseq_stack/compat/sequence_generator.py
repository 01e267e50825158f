"""``fairseq.sequence_generator``: a sentence gets the same result as alone, whatever else is in its batch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from fairseq_stack.compat.replacing import replaces
from fairseq_stack.errors import UserError

Hypotheses = list[list[dict[str, Tensor]]]


class OwnLengths(nn.Module):
    """One of fairseq's search strategies, with a maximum length for each sentence. An instance serves one batch.

    From its maximum length on, a sentence has no continuation except EOS. fairseq says which sentences of the batch are
    left, so this strategy knows the maximum length of every row that it gets.

    Args:
        search: the strategy (``fairseq.search.Search``) that selects the candidates.
        max_lengths: maximum number of tokens (B,) of each sentence, EOS not counted, on the CPU.
        numbers: of the sentences (B,), for errors.
        eos: index of EOS.
    """

    def __init__(self, search: Any, max_lengths: Tensor, numbers: Tensor, eos: int) -> None:
        super().__init__()
        self.search = search
        self.max_lengths, self.numbers = max_lengths, numbers
        self.eos = eos
        self.supports_constraints = search.supports_constraints
        self.init_constraints, self.update_constraints = search.init_constraints, search.update_constraints
        self.set_src_lengths = search.set_src_lengths
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
        without_output = at_limit & scores.isneginf().all(dim=1)
        if not self.stop_on_max_len and without_output.any():
            number = int(self.numbers[without_output.cpu()][0])
            raise UserError(
                f"sentence {number}: the search found no output of up to {step} tokens with a positive probability: "
                "expected a prefix, constraints and a maximum length (--max-len-a, --max-len-b) that can be met, and a "
                "model whose outputs are numbers"
            )
        return scores, symbols, beams

    def prune_sentences(self, batch_idxs: Tensor) -> None:
        """Keep only these sentences of the batch."""
        self.max_lengths, self.numbers = self.max_lengths[batch_idxs.cpu()], self.numbers[batch_idxs.cpu()]
        self.search.prune_sentences(batch_idxs)


@replaces("fairseq.sequence_generator:SequenceGenerator._generate")
def generate(
    original: Any, self: Any, sample: dict[str, Any], prefix_tokens: Tensor | None = None, **kwargs: Any
) -> Hypotheses:
    """Give each sentence of a batch its own maximum length, so that its result equals that of ``--batch-size 1``.

    fairseq computes one maximum length for the batch, from its longest source. With ``--max-len-a`` a sentence may
    therefore get longer hypotheses in a batch with a long sentence than alone.

    For every model, so that stack models and fairseq's are compared with the same search. Unnecessary with a fairseq
    that has a maximum length for each sentence.
    """
    from fairseq.search import DiverseBeamSearch

    source = sample["net_input"].get("src_tokens")
    if source is None or source.dim() != 2:  # speech
        return original(self, sample, prefix_tokens, **kwargs)
    if prefix_tokens is not None and is_left_padded(sample.get("target"), self.pad):
        raise UserError("--prefix-size needs targets that are padded on the right: leave out --left-pad-target")
    numbers = sample.get("id", torch.arange(len(source))).cpu()
    if isinstance(self.search, DiverseBeamSearch):  # its tables have a row for each sentence of the batch
        sample = {**sample, "id": torch.arange(len(source), device=source.device)}
    max_lengths = _max_lengths(self, sample["net_input"])
    before = self.search, self.max_len_a, self.max_len_b
    self.search = OwnLengths(self.search, max_lengths, numbers, self.eos)
    self.max_len_a, self.max_len_b = 0, int(max_lengths.max())
    try:
        with prompts(self.model, prefix_tokens, self.max_len_b, self.pad):
            return original(self, sample, prefix_tokens, **kwargs)
    finally:
        self.search, self.max_len_a, self.max_len_b = before


def is_left_padded(target: Tensor | None, pad: int) -> bool:
    """Whether targets (B, n) are padded on the left."""
    return target is not None and bool((target[:, 0].eq(pad) & target[:, -1].ne(pad)).any())


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


@replaces("fairseq.sequence_generator:SequenceGenerator._prefix_tokens")
def prefix_tokens(
    original: Any,
    self: Any,
    step: int,
    lprobs: Tensor,
    scores: Tensor,
    tokens: Tensor,
    prefix_tokens: Tensor,
    beam_size: int,
) -> tuple[Tensor, ...]:
    """Respect ``--min-len`` and suppressed tokens even if the prefix of a sentence is shorter than another in the
    batch.

    Unnecessary with a fairseq that respects them.
    """
    if isinstance(self.search, OwnLengths):
        at_limit = self.search.at_limit(step).to(prefix_tokens.device)
        prefix_tokens = prefix_tokens.masked_fill(at_limit[:, None], self.pad)
        free = prefix_tokens[:, step].eq(self.pad).repeat_interleave(beam_size)
        if step < self.min_len:
            lprobs[free, self.eos] = -math.inf
        if self.token_indices_to_suppress is not None:
            lprobs[free.nonzero(), self.token_indices_to_suppress] = -math.inf
    return original(self, step, lprobs, scores, tokens, prefix_tokens, beam_size)


@replaces("fairseq.sequence_generator:SequenceGenerator.is_finished")
def is_finished(
    original: Any, self: Any, step: int, unfin_idx: int, max_len: int, finalized_sent_len: int, beam_size: int
) -> bool:
    """End a sentence at its own maximum length.

    Unnecessary with a fairseq that has a maximum length for each sentence.
    """
    if isinstance(self.search, OwnLengths) and bool(self.search.at_limit(step)[unfin_idx]):
        max_len = step
    return original(self, step, unfin_idx, max_len, finalized_sent_len, beam_size)


@contextmanager
def prompts(model: Any, tokens: Tensor | None, max_length: int, pad: int) -> Iterator[None]:
    """Let an ensemble (``EnsembleModel``) know the prompts of a batch before it is asked for the first token.

    Args:
        model: the ensemble.
        tokens: (B, P), padded at the end, or None.
        max_length: how many tokens are generated at most, the prompt's included.
        pad: index of padding.
    """
    if tokens is not None:
        # What the shortest prompt has is read at once.
        model.prompts = tokens[:, : min(max_length, int(tokens.ne(pad).sum(1).min()))]
    try:
        yield
    finally:
        model.prompts = None


@replaces("fairseq.sequence_generator:EnsembleModel.forward_decoder")
def forward_decoder(
    original: Any, self: Any, tokens: Tensor, encoder_outs: Any, incremental_states: list[Any], *args: Any
) -> Any:
    """Read prompts at once, and keep the features of their tokens for the steps that fairseq takes through them.

    For stack LSTMs and stack transformers that are language models. Unnecessary with a fairseq that reads prompts at
    once.
    """
    given = getattr(self, "prompts", None)
    if tokens.size(1) == 1 and given is not None and _read_ahead(self):
        rows = torch.arange(len(given), device=tokens.device)
        beam_size = len(tokens) // len(rows)
        for model, state in zip(self.models, incremental_states, strict=True):
            model.decoder.read_ahead(torch.cat([tokens[::beam_size], given], 1), state)
        self.reorder_incremental_state(incremental_states, rows.repeat_interleave(beam_size))
    return original(self, tokens, encoder_outs, incremental_states, *args)


def _read_ahead(ensemble: Any) -> bool:
    """Whether all models are language models whose decoders can read several tokens at once."""
    return not ensemble.has_encoder() and all(hasattr(model.decoder, "read_ahead") for model in ensemble.models)
