"""The beam search of DuSell & Chiang (2024), Appendix G.4, as a generator for fairseq."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.sequence_generator import EnsembleModel
from torch import Tensor, nn

from fairseq_stack.compat.sequence_generator import prompts
from fairseq_stack.errors import UserError

Hypothesis = dict[str, Any]


@dataclass(frozen=True)
class Beam:
    """The beams of B sentences after t steps: K slots each, best first, empty slots last.

    ``tokens`` starts with BOS; a hypothesis that finished earlier is filled up with EOS. All tensors are
    (B, K) except for ``tokens`` (B, K, t + 1) and ``token_scores`` (B, K, t).
    """

    tokens: Tensor
    token_scores: Tensor
    log_prob: Tensor
    length: Tensor
    finished: Tensor
    filled: Tensor

    @classmethod
    def initial(cls, batch_size: int, beam_size: int, bos: int, device: torch.device) -> Beam:
        """One hypothesis a sentence, with nothing generated yet, in slot 0."""
        shape = (batch_size, beam_size)
        filled = torch.zeros(shape, dtype=torch.bool, device=device)
        filled[:, 0] = True
        return cls(
            tokens=torch.full((*shape, 1), bos, dtype=torch.long, device=device),
            token_scores=torch.zeros((*shape, 0), device=device),
            log_prob=torch.zeros(shape, device=device),
            length=torch.zeros(shape, dtype=torch.long, device=device),
            finished=torch.zeros_like(filled),
            filled=filled,
        )

    @property
    def growing(self) -> Tensor:
        """The slots (B, K) whose hypotheses can be extended."""
        return self.filled & ~self.finished

    def select_sentences(self, index: Tensor) -> Beam:
        """The beams of the sentences in ``index``."""
        return Beam(**{name: value[index] for name, value in vars(self).items()})


class LengthNormalizedBeamSearchGenerator:
    r"""Beam search that normalises by length *before* it selects the next beam.

    A beam holds at most :math:`k` hypotheses of a sentence. At step :math:`t = 1, 2, \ldots` each unfinished
    hypothesis is extended by its :math:`k` most probable symbols; each finished hypothesis (it ends in EOS) stays as
    it is. The next beam is the :math:`k` best of them all by :math:`\log p(y) / |y|`, where :math:`|y|` is
    the number of tokens generated so far, EOS included: :math:`t` for a hypothesis that was just extended, less
    for one that finished earlier. A finished hypothesis keeps its slot only as long as it is among the :math:`k`
    best. fairseq's own search differs in all of this: it compares raw log-probabilities, moves finished
    hypotheses off the beam, continues until :math:`k` are finished, and normalises only when it sorts them.

    The search for a sentence ends, as in the authors' program,

    - when the *top* of its beam is finished. The result is the finished hypotheses on the beam, best first
      (often fewer than :math:`k`; the unfinished ones are fragments and are left out);
    - or after :math:`L` steps, :math:`L` = ``max_len_a`` * source length + ``max_len_b`` (and fewer than
      the decoder has positions). The result is the whole beam, best first. Its top is unfinished then, and
      stays first even if hypotheses below it are finished. An unfinished hypothesis is closed with an EOS
      that costs nothing: its positional score is 0, and ``score`` stays :math:`\log p(y) / L`. As in
      fairseq's own search, no hypothesis has more than :math:`L` tokens and an EOS.

    Results do not depend on the rest of the batch, so the source length is the sentence's own (with EOS,
    without padding); fairseq uses the longest sentence of the batch. Symbols of probability zero are never
    generated: where fewer than :math:`k` hypotheses of positive probability exist, the beam has fewer. Pad is
    never generated, and EOS not before ``min_len`` tokens (fairseq's default is 1; the paper has no minimum,
    which is 0). Prefix tokens count towards probability and length, as in fairseq.

    Args:
        models: the ensemble, whose probabilities are averaged, as in fairseq.
        tgt_dict: dictionary of the output.
        beam_size: :math:`k`.
        max_len_a, max_len_b: maximum length as a function of the source length, EOS not counted.
        min_len: minimal length, EOS not counted; does not apply to prefixes.
        unk_penalty: subtracted from the log-probability of the unknown word at each step.
        temperature: divides the logits.

    Raises:
        ValueError: an argument is out of range.
    """

    def __init__(
        self,
        models: list[nn.Module],
        tgt_dict: Dictionary,
        *,
        beam_size: int = 5,
        max_len_a: float = 0,
        max_len_b: int = 200,
        min_len: int = 1,
        unk_penalty: float = 0.0,
        temperature: float = 1.0,
    ) -> None:
        if beam_size < 1:
            raise UserError(f"beam_size (--beam): expected at least 1, got {beam_size}")
        if min_len < 0:
            raise UserError(f"min_len (--min-len): expected at least 0, got {min_len}")
        if not temperature > 0:
            raise UserError(f"temperature (--temperature): expected more than 0, got {temperature}")
        self.model = EnsembleModel(models)
        self.model.eval()
        self.beam_size = beam_size
        self.max_len_a = max_len_a
        self.max_len_b = max_len_b
        self.min_len = min_len
        self.unk_penalty = unk_penalty
        self.temperature = temperature
        self.pad, self.unk, self.eos = tgt_dict.pad(), tgt_dict.unk(), tgt_dict.eos()
        self.symbols_to_strip_from_output = {self.eos}

    @torch.no_grad()
    def generate(
        self,
        models: list[nn.Module],
        sample: dict[str, Any],
        prefix_tokens: Tensor | None = None,
        constraints: Tensor | None = None,
        bos_token: int | None = None,
    ) -> list[list[Hypothesis]]:
        """Search for the best outputs of a batch.

        Args:
            models: ignored, as in fairseq's own generator; the models of the constructor are used.
            sample: a batch of fairseq, which must have ``sample["net_input"]["src_tokens"]``, (B, S).
            prefix_tokens: (B, P), padded with pad: what each output must start with.
            constraints: not used; the tasks refuse them.
            bos_token: first input of the decoder, EOS if ``None``.

        Returns:
            For each sentence a list of at least one hypothesis, best first. A hypothesis is a dict:
            ``tokens`` (n,) including EOS; ``score``, a scalar: log-probability (natural logarithm) divided by length;
            ``positional_scores`` (n,), the log-probabilities of the tokens; ``attention`` and ``alignment``, empty;
            ``finished``, False if the EOS was only added to close it.

        Raises:
            ValueError: the minimal length exceeds the maximal one; the model returns NaN; or nothing that is allowed
                has a positive probability.
        """
        max_lengths = self._max_lengths(sample["net_input"])
        batch_size, device = max_lengths.numel(), max_lengths.device
        bos = self.eos if bos_token is None else bos_token

        beam = Beam.initial(batch_size, self.beam_size, bos, device)
        rows = torch.arange(batch_size, device=device)
        encoder_outs = self.model.forward_encoder(sample["net_input"])
        encoder_outs = self.model.reorder_encoder_out(encoder_outs, rows.repeat_interleave(self.beam_size))
        incremental_states: list[dict[str, Any]] = [{} for _ in range(self.model.models_size)]

        results: list[list[Hypothesis]] = [[] for _ in range(batch_size)]
        sentences = rows  # places in the batch of the sentences whose search continues
        longest = int(max_lengths.max())
        for step in range(longest):
            with prompts(self.model, prefix_tokens, longest, self.pad):
                log_probs = self._log_probs(beam, encoder_outs, incremental_states)
            prefix = None if prefix_tokens is None else prefix_tokens[sentences]
            self._forbid(log_probs, step, prefix)
            self._check_possible(beam, log_probs, step, sentences)
            beam, parents = self._advance(beam, log_probs)

            done = beam.finished[:, 0] | (max_lengths[sentences] == step + 1)
            for i in done.nonzero().flatten().tolist():
                results[int(sentences[i])] = self._hypotheses(beam, i)
            remaining = (~done).nonzero().flatten()
            if remaining.numel() == 0:
                break
            # Whole sentences are dropped, never single slots: fairseq's cross-attention assumes that an order of
            # unchanged size only permutes slots within sentences, and then leaves its keys where they are.
            order = (remaining[:, None] * self.beam_size + parents[remaining]).flatten()
            self.model.reorder_incremental_state(incremental_states, order)
            encoder_outs = self.model.reorder_encoder_out(encoder_outs, order)
            beam = beam.select_sentences(remaining)
            sentences = sentences[remaining]
        return results

    def _max_lengths(self, net_input: dict[str, Any]) -> Tensor:
        """The maximal number of tokens (B,), EOS not counted, of each sentence."""
        source_lengths = net_input["src_tokens"].ne(self.pad).sum(dim=1)
        lengths = (self.max_len_a * source_lengths.double() + self.max_len_b).long()
        lengths = lengths.clamp(max=self.model.max_decoder_positions() - 1)
        shortest, required = int(lengths.min()), max(self.min_len, 1)
        if shortest < required:
            raise UserError(
                f"maximum length (--max-len-a, --max-len-b, positions of the decoder): expected at least "
                f"{required} (--min-len, or 1), got {shortest}"
            )
        return lengths

    def _log_probs(self, beam: Beam, encoder_outs: list[Any], incremental_states: list[dict[str, Any]]) -> Tensor:
        """Log-probabilities (B, K, V) of the next symbol."""
        batch_size, beam_size, _ = beam.tokens.shape
        log_probs, _ = self.model.forward_decoder(
            beam.tokens.flatten(0, 1), encoder_outs, incremental_states, self.temperature
        )
        if log_probs.dtype in (torch.float16, torch.bfloat16):
            log_probs = log_probs.float()
        return log_probs.reshape(batch_size, beam_size, -1)

    def _forbid(self, log_probs: Tensor, step: int, prefix: Tensor | None) -> None:
        """Apply the penalty and forbid symbols, in place; ``step`` tokens exist already."""
        log_probs[..., self.pad] = -math.inf
        log_probs[..., self.unk] -= self.unk_penalty
        too_short = log_probs.new_full((log_probs.size(0),), step < self.min_len, dtype=torch.bool)
        if prefix is not None and step < prefix.size(1):
            forced = prefix[:, step]
            is_forced = forced.ne(self.pad)
            others = torch.ones_like(log_probs[:, 0], dtype=torch.bool).scatter_(1, forced[:, None], False)
            log_probs.masked_fill_((others & is_forced[:, None])[:, None, :], -math.inf)
            too_short &= ~is_forced
        log_probs[..., self.eos].masked_fill_(too_short[:, None], -math.inf)

    def _check_possible(self, beam: Beam, log_probs: Tensor, step: int, sentences: Tensor) -> None:
        """Raise ValueError if a probability is NaN or no continuation of a sentence is possible."""
        best = log_probs.amax(dim=2)  # amax propagates NaN
        is_nan = (best.isnan() & beam.growing).any(dim=1)
        # If the top cannot be extended, the finished hypotheses below it are the next beam.
        is_stuck = ~((best > -math.inf) & beam.growing).any(dim=1) & ~beam.finished.any(dim=1)
        wrong = (is_nan | is_stuck).nonzero().flatten()
        if wrong.numel() == 0:
            return
        first = int(wrong[0])
        where = f"sentence {int(sentences[first])} of the batch, token {step + 1} of the output"
        if is_nan[first]:
            raise UserError(f"log-probabilities of the model: expected numbers, got NaN ({where})")
        raise UserError(
            "log-probabilities of the model: expected an allowed symbol with a positive probability, got "
            f"none ({where}); a prefix token that cannot occur or --min-len {self.min_len} can be the reason"
        )

    def _advance(self, beam: Beam, log_probs: Tensor) -> tuple[Beam, Tensor]:
        """One step: the next beam, and the slots (B, K) of the present one that its hypotheses come from."""
        beam_size = self.beam_size
        step = beam.tokens.size(2)  # tokens of a hypothesis extended now, since BOS is not counted
        # A symbol that is not among the k best of its hypothesis is not among the k best of all: lengths are equal.
        branching = min(beam_size, log_probs.size(2))
        symbol_scores, symbols = log_probs.topk(branching, dim=2)
        extended = (beam.log_prob[..., None] + symbol_scores).masked_fill(~beam.growing[..., None], -math.inf)
        kept = beam.log_prob.masked_fill(~beam.finished, -math.inf)
        candidates = torch.cat([extended.flatten(1), kept], dim=1)
        scores = torch.cat([extended.flatten(1) / step, kept / beam.length.clamp(min=1)], dim=1)
        best_scores, best = scores.topk(beam_size, dim=1)

        filled = best_scores > -math.inf
        num_extended = beam_size * branching
        is_kept = best >= num_extended
        # Slots that stay empty copy slot 0 and, like finished ones, read EOS: every model can read that.
        parents = torch.where(is_kept, best - num_extended, best // branching).masked_fill(~filled, 0)
        is_extended = filled & ~is_kept
        chosen = best.clamp(max=num_extended - 1)
        new_symbols = symbols.flatten(1).gather(1, chosen).masked_fill(~is_extended, self.eos)
        new_scores = symbol_scores.flatten(1).gather(1, chosen).masked_fill(~is_extended, 0.0)

        def extend(history: Tensor, new: Tensor) -> Tensor:
            sentence = torch.arange(len(parents), device=parents.device)[:, None]
            return torch.cat([history[sentence, parents], new.unsqueeze(2)], dim=2)

        next_beam = Beam(
            tokens=extend(beam.tokens, new_symbols),
            token_scores=extend(beam.token_scores.to(new_scores.dtype), new_scores),
            log_prob=candidates.gather(1, best),
            length=torch.where(is_kept, beam.length.gather(1, parents), step),
            finished=filled & new_symbols.eq(self.eos),
            filled=filled,
        )
        return next_beam, parents

    def _hypotheses(self, beam: Beam, sentence: int) -> list[Hypothesis]:
        """The result for one sentence, whose search has ended: see the class."""
        top_is_finished = bool(beam.finished[sentence, 0])
        slots = beam.finished[sentence] if top_is_finished else beam.filled[sentence]
        return [self._hypothesis(beam, sentence, slot) for slot in slots.nonzero().flatten().tolist()]

    def _hypothesis(self, beam: Beam, sentence: int, slot: int) -> Hypothesis:
        length = int(beam.length[sentence, slot])
        finished = bool(beam.finished[sentence, slot])
        tokens = beam.tokens[sentence, slot, 1 : length + 1]
        token_scores = beam.token_scores[sentence, slot, :length]
        if not finished:
            tokens = torch.cat([tokens, tokens.new_tensor([self.eos])])
            token_scores = torch.cat([token_scores, token_scores.new_zeros(1)])
        return {  # clones, since a view would keep the tensors of the whole batch alive
            "tokens": tokens.clone(),
            "score": beam.log_prob[sentence, slot] / length,
            "attention": torch.empty(0),
            "alignment": torch.empty(0),
            "positional_scores": token_scores.clone(),
            "finished": finished,
        }
