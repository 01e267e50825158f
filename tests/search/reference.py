"""A scripted model, and slow searches, one sentence at a time, that the generator is compared with."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.data.data_utils import collate_tokens
from fairseq.models import FairseqEncoder, FairseqEncoderDecoderModel, FairseqIncrementalDecoder
from torch import Tensor

BOS, PAD, EOS, UNK, FIRST_WORD = range(5)
Tokens = tuple[int, ...]
NextLogProbs = Callable[[Tokens], Sequence[float]]


@dataclass(frozen=True)
class RandomTable:
    """Logits of the next symbol that depend on everything there is: the source and all symbols so far.

    ``impossible`` symbols have logit -inf everywhere; with ``holes`` any symbol but EOS and the first word
    has it here and there.
    """

    seed: int
    vocab_size: int
    impossible: frozenset[int] = frozenset()
    holes: bool = False
    eos_bonus: float = 0.0

    def __call__(self, source: Tokens, history: Tokens) -> list[float]:
        rng = random.Random(repr((self.seed, source, history)))
        logits = [rng.gauss(0.0, 1.5) for _ in range(self.vocab_size)]
        logits[EOS] += self.eos_bonus
        for symbol in range(self.vocab_size):
            is_hole = self.holes and symbol not in (EOS, FIRST_WORD) and rng.random() < 0.3
            if symbol in self.impossible or is_hole:
                logits[symbol] = -math.inf
        return logits


@dataclass(frozen=True)
class ScriptedTable:
    """Probabilities written down for some histories (without BOS); EOS is certain after all others."""

    vocab_size: int
    rows: dict[Tokens, dict[int, float]] = field(default_factory=dict)

    def __call__(self, source: Tokens, history: Tokens) -> list[float]:
        row = self.rows.get(history[1:], {EOS: 1.0})
        return [math.log(row[symbol]) if symbol in row else -math.inf for symbol in range(self.vocab_size)]


class _Encoder(FairseqEncoder):
    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None) -> dict[str, list[Tensor]]:
        return {"src_tokens": [src_tokens]}

    def reorder_encoder_out(self, encoder_out: dict[str, list[Tensor]], new_order: Tensor) -> dict[str, list[Tensor]]:
        return {"src_tokens": [encoder_out["src_tokens"][0][new_order]]}


class _Decoder(FairseqIncrementalDecoder):
    """Knows its history from the incremental state only, so it errs when that is not reordered."""

    def __init__(self, dictionary: Dictionary, table: Callable[[Tokens, Tokens], list[float]], positions: int):
        super().__init__(dictionary)
        self.table = table
        self.positions = positions

    def max_positions(self) -> int:
        return self.positions

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: dict[str, list[Tensor]] | None = None,
        incremental_state: dict[str, Any] | None = None,
    ) -> tuple[Tensor, dict[str, list[None]]]:
        assert encoder_out is not None
        assert prev_output_tokens.size(1) <= self.positions
        assert not prev_output_tokens.eq(PAD).any()
        history = prev_output_tokens
        if incremental_state is not None:
            history = history[:, -1:]
            if "history" in incremental_state:
                history = torch.cat([incremental_state["history"], history], dim=1)
            incremental_state["history"] = history
        sources = encoder_out["src_tokens"][0]
        rows = [
            [self.table(tuple(s for s in source if s != PAD), tuple(past))]
            for source, past in zip(sources.tolist(), history.tolist(), strict=True)
        ]
        return torch.tensor(rows, dtype=torch.float64), {"attn": [None]}

    def reorder_incremental_state(self, incremental_state: dict[str, Any], new_order: Tensor) -> None:
        if "history" in incremental_state:
            incremental_state["history"] = incremental_state["history"][new_order]


class ScriptedModel(FairseqEncoderDecoderModel):
    def __init__(
        self, dictionary: Dictionary, table: Callable[[Tokens, Tokens], list[float]], positions: int = 100
    ) -> None:
        super().__init__(_Encoder(dictionary), _Decoder(dictionary, table, positions))
        self.table = table

    def get_normalized_probs(self, net_output: Any, log_probs: bool, sample: Any = None) -> Tensor:
        return torch.log_softmax(net_output[0], dim=-1)  # fairseq's own is float32


def make_sample(sources: Sequence[Tokens], *, left_pad: bool = True) -> dict[str, Any]:
    tensors = [torch.tensor(source) for source in sources]
    return {
        "id": torch.arange(len(sources)),
        "net_input": {
            "src_tokens": collate_tokens(tensors, PAD, left_pad=left_pad),
            "src_lengths": torch.tensor([len(source) for source in sources]),
        },
    }


def _log_softmax(logits: Sequence[float]) -> list[float]:
    total = math.log(sum(math.exp(logit) for logit in logits))
    return [logit - total for logit in logits]


def next_log_probs(
    models: Sequence[ScriptedModel],
    source: Tokens,
    *,
    bos: int = EOS,
    min_len: int = 0,
    prefix: Tokens = (),
    unk_penalty: float = 0.0,
    temperature: float = 1.0,
) -> NextLogProbs:
    """What the search for one sentence has to deal with, as a function of the tokens so far."""

    def log_probs(tokens: Tokens) -> list[float]:
        members = [
            _log_softmax([logit / temperature for logit in model.table(source, (bos, *tokens))]) for model in models
        ]
        means = [sum(math.exp(x) for x in column) / len(models) for column in zip(*members, strict=True)]
        result = [math.log(mean) if mean > 0 else -math.inf for mean in means]
        result[PAD] = -math.inf
        result[UNK] -= unk_penalty
        if len(tokens) < len(prefix):
            forced = prefix[len(tokens)]
            return [x if symbol == forced else -math.inf for symbol, x in enumerate(result)]
        if len(tokens) < min_len:
            result[EOS] = -math.inf
        return result

    return log_probs


class Item(NamedTuple):
    """A hypothesis: its tokens, and the log-probability of each."""

    tokens: Tokens
    log_probs: tuple[float, ...]

    @property
    def finished(self) -> bool:
        return self.tokens[-1:] == (EOS,)

    @property
    def score(self) -> float:
        return sum(self.log_probs) / len(self.log_probs)

    def extensions(self, log_probs: NextLogProbs) -> list[Item]:
        if self.finished:
            return [self]
        return [
            Item((*self.tokens, symbol), (*self.log_probs, x))
            for symbol, x in enumerate(log_probs(self.tokens))
            if x > -math.inf
        ]


def reference_search(log_probs: NextLogProbs, beam_size: int, max_len: int) -> list[Item]:
    """Appendix G.4 for one sentence, without state, candidates in a Python list."""
    beam = [Item((), ())]
    for _ in range(max_len):
        candidates = [extension for item in beam for extension in item.extensions(log_probs)]
        beam = sorted(candidates, key=lambda item: item.score, reverse=True)[:beam_size]
        if beam[0].finished:
            return [item for item in beam if item.finished]
    return beam


def assert_same_hypotheses(
    actual: Sequence[dict[str, Any]], expected: Sequence[Item], tolerance: float = 1e-12
) -> None:
    """Compare tokens exactly, scores to ``tolerance``; unfinished hypotheses are closed with a free EOS."""
    closed = [item.tokens if item.finished else (*item.tokens, EOS) for item in expected]
    assert [tuple(hypothesis["tokens"].tolist()) for hypothesis in actual] == closed
    for hypothesis, item in zip(actual, expected, strict=True):
        assert hypothesis["finished"] == item.finished
        assert abs(float(hypothesis["score"]) - item.score) <= tolerance
        positional = item.log_probs if item.finished else (*item.log_probs, 0.0)
        assert hypothesis["positional_scores"].tolist() == pytest.approx(positional, abs=tolerance)
