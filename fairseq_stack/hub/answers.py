"""What a model says about given answers to sources, by teacher forcing.

An encoder-decoder encodes the source. A language model reads the source and then the answer, as one string.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from fairseq import utils
from fairseq.data import Dictionary
from fairseq.data.language_pair_dataset import collate
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.transformations import AnswerScore
from fairseq_stack.hub.batches import batches_of_lengths, require_lengths
from fairseq_stack.hub.interface import Hub, LanguageModelHub, TransductionHub, TranslationHub
from fairseq_stack.hub.strings import at_targets

AnsweringHub: TypeAlias = LanguageModelHub | TranslationHub


@dataclass(frozen=True)
class Answer:
    """An answer to score.

    Attributes:
        source: the words of the source.
        words: the n words of the answer.
        place: a place in the answer, from 0, for which words compete.
        rivals: these words: none, or as many as those of the other answers that have some.
    """

    source: Sequence[str]
    words: Sequence[str]
    place: int = 0
    rivals: Sequence[str] = ()


def require_answers(hub: Hub) -> AnsweringHub:
    """The hub, if its model answers sources.

    Raises:
        UserError: it transduces strings, or is a language model whose strings begin with ``<s>``.
    """
    if isinstance(hub, TransductionHub):
        raise UserError("the checkpoint holds a model of transductions; expected a language or translation model")
    return hub if isinstance(hub, TranslationHub) else hub.as_language_model()


@torch.no_grad()
def score_answers(
    hub: AnsweringHub, answers: Sequence[Answer], *, batch_size: int | None, max_tokens: int | None
) -> Iterator[tuple[int, AnswerScore]]:
    """Yield for each answer its position in ``answers`` and what the model says about it, in any order.

    Args:
        hub: a model, or an ensemble, whose probabilities are averaged.
        answers: the answers.
        batch_size: the maximum number of answers at a time, or None for any number.
        max_tokens: the maximum number of tokens of sources and answers at a time, padding included (a single answer may
            have more), or None.

    Raises:
        UserError: a source or an answer is longer than the model accepts, or has a word that the dictionary lacks; or
            the model computes a probability that is not a number, or is 0.
    """
    sources, targets = _encoded(hub, answers)
    lengths = [len(source) + len(target) for source, target in zip(sources, targets, strict=True)]
    predict = _of_translations if isinstance(hub, TranslationHub) else _after_sources
    for batch in batches_of_lengths(lengths, batch_size, max_tokens):
        of_batch = [targets[number] for number in batch]
        log_probs = predict(hub, [sources[number] for number in batch], of_batch)
        padded = _padded(hub, of_batch)
        log_probs[:, :, hub.tgt_dict.pad()] = -math.inf  # fairseq's search never writes it
        of_targets, is_best = at_targets(log_probs, padded).tolist(), log_probs.argmax(2).eq(padded).tolist()
        for row, number in enumerate(batch):
            answer, length = answers[number], len(targets[number])
            rivals = [hub.tgt_dict.index(word) for word in answer.rivals]
            of_rivals = log_probs[row, answer.place, rivals].double().tolist()
            score = AnswerScore(of_targets[row][:length], is_best[row][:length], of_rivals)
            if not all(map(math.isfinite, score.log_probabilities)):
                words = " ".join(answer.words)
                raise UserError(f"the model's probability of a word of {words!r} is 0 or not a number")
            yield number, score


def _encoded(hub: AnsweringHub, answers: Sequence[Answer]) -> tuple[list[Tensor], list[Tensor]]:
    """The tokens of sources, with ends for an encoder, and of answers with ends; none are too many for the model."""
    targets = [_tokens(hub.tgt_dict, answer.words, [hub.tgt_dict.eos()]) for answer in answers]
    if isinstance(hub, LanguageModelHub):
        sources = [_tokens(hub.src_dict, answer.source) for answer in answers]
        require_lengths([torch.cat(both) for both in zip(sources, targets, strict=True)], hub.max_positions)
    else:
        sources = [_tokens(hub.src_dict, answer.source, [hub.src_dict.eos()]) for answer in answers]
        for tokens, limit in zip((sources, targets), hub.max_positions, strict=True):
            require_lengths(tokens, limit)
    return sources, targets


def _tokens(dictionary: Dictionary, words: Sequence[str], end: Sequence[int] = ()) -> Tensor:
    for word in words:
        if word not in dictionary:
            raise UserError(
                f"{' '.join(words)!r} has the word {word!r}, which the dictionary of the model lacks: expected the "
                "words that the model was trained on"
            )
    return torch.tensor([*map(dictionary.index, words), *end], dtype=torch.long)


def _padded(hub: AnsweringHub, tokens: Sequence[Tensor]) -> Tensor:
    padded: Tensor = pad_sequence(list(tokens), batch_first=True, padding_value=hub.tgt_dict.pad())
    return padded.to(hub.device)


def _after_sources(hub: LanguageModelHub, sources: Sequence[Tensor], targets: Sequence[Tensor]) -> Tensor:
    """The log-probabilities (B, m, V) of all tokens at the places of targets of at most m tokens."""
    strings = _padded(hub, [torch.cat(both) for both in zip(sources, targets, strict=True)])
    rows = torch.arange(len(targets), device=hub.device).unsqueeze(1)
    beginnings = torch.tensor(list(map(len, sources)), device=hub.device).unsqueeze(1)
    places = beginnings + torch.arange(max(map(len, targets)), device=hub.device)
    return hub.log_probabilities(strings)[rows, places.clamp(max=strings.size(1) - 1)]


def _of_translations(hub: TranslationHub, sources: Sequence[Tensor], targets: Sequence[Tensor]) -> Tensor:
    """The same for an encoder-decoder."""
    pairs = enumerate(zip(sources, targets, strict=True))
    samples = [{"id": row, "source": source, "target": target} for row, (source, target) in pairs]
    pad, end = hub.tgt_dict.pad(), hub.tgt_dict.eos()
    batch = collate(samples, pad, end, left_pad_source=hub.task.cfg.left_pad_source)
    inputs = utils.apply_to_sample(lambda tensor: tensor.to(hub.device), batch["net_input"])
    in_order = batch["id"].argsort().to(hub.device)  # fairseq sorts sources by length
    return hub.mean_log_probabilities(**inputs)[in_order]
