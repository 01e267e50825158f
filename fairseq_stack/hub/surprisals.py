"""The surprisal of each word of a text under a language model."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from fairseq_stack.errors import UserError
from fairseq_stack.hub.batches import batches_of_lengths
from fairseq_stack.hub.language_model import CutSentence, Cutter, LanguageModel, Vocabulary
from fairseq_stack.hub.parse_beams import Beam, Scores, beam_of, scores_of_parses
from fairseq_stack.hub.strings import at_targets, padded

if TYPE_CHECKING:
    from fairseq_stack.hub.interface import Hub

SENTENCES_AT_ONCE = 1000
"""How many sentences are read before they are sorted by length and scored."""


@dataclass(frozen=True)
class Word:
    """A word in a sentence.

    Attributes:
        text: the word, or ``</s>`` for the end of the sentence.
        num_tokens: number of its tokens.
        surprisal: -log p(word | the words before it), in nats.
        is_unknown: whether one of its tokens is ``<unk>`` or a class of unknown words to the model.
    """

    text: str
    num_tokens: int
    surprisal: float
    is_unknown: bool


def surprisals(
    hub: Hub | LanguageModel,
    sentences: Iterable[str],
    *,
    correct_word_ends: bool = False,
    beam_size: int | None = None,
    telescoping: bool = False,
    batch_size: int | None = None,
    max_tokens: int | None = 2000,
) -> Iterator[list[Word]]:
    """Yield the words of each sentence and its end, in order.

    The first word is predicted from the beginning of the sentence. A word of several pieces has the sum of their
    surprisals. Without correction, the surprisals of a sentence sum to -log p of ``fairseq-eval-lm
    --sample-break-mode eos``.

    The pieces of a word do not reveal that the word ends with them: the first piece of the next word does, or the end
    of the sentence. Corrected surprisals charge the end of a word to the word (Pimentel & Meister, 2024; Oh & Schuler,
    2024). With B, the pieces that begin a word and the end of a sentence,

        p(w | c) = p(pieces of w | c) * sum of p(s | c, pieces of w) over s in B / sum of p(s | c) over s in B.

    A model that parses (``pushdown_transformer_lm``) keeps a beam of parses y. With s_y = log p(c, y), the conditional
    surprisal of a word is of a distribution of words,

        log (sum of exp s_y over the beam) - log (sum of exp s_y p(w | c, y) over the beam),

    and the telescoping one is the difference between the second term and the second term of the word before. Those of a
    sentence sum to -log p of the sentence with the parses of the beam. The two are equal if the beam has all parses.

    Args:
        hub: a language model, or an ensemble, whose probabilities are averaged; or a folder of transformers
            (:class:`fairseq_stack.huggingface.language_model.HuggingFaceLanguageModel`).
        sentences: raw text if the data of the model are in pieces, else tokens separated by spaces.
        correct_word_ends: charge the end of a word of pieces to the word.
        beam_size: for models that parse, the number of parses kept (None:
            :data:`~fairseq_stack.hub.parse_beams.BEAM_SIZE`).
        telescoping: of a model that parses, whether its surprisals are telescoping ones.
        batch_size: the maximum number of sentences at a time, or None for any number.
        max_tokens: the maximum number of tokens at a time, with padding, in each of the parses of a beam (a single
            sentence may have more), or None.

    Raises:
        UserError: the model is not a language model, or does not parse and is given a beam; a sentence is longer than
            the model accepts, or has a word that it cannot predict; or its pieces do not make words.
    """
    model = hub.as_language_model()
    beam = beam_of(model, beam_size, telescoping)
    begins = _beginnings(model) if correct_word_ends else None
    cutter = Cutter(model)
    numbered = enumerate(sentences, start=1)
    while chunk := [cutter.cut(text, number) for number, text in itertools.islice(numbered, SENTENCES_AT_ONCE)]:
        words: dict[int, list[Word]] = {}
        lengths = [len(sentence.tokens) for sentence in chunk]
        limit = max_tokens if max_tokens is None or beam is None else max_tokens // beam.size
        for batch in batches_of_lengths(lengths, batch_size, limit, same_length=beam is not None):
            words |= zip(batch, _score(model, [chunk[place] for place in batch], begins, beam), strict=True)
        yield from (words[place] for place in range(len(chunk)))


def _beginnings(model: LanguageModel) -> Tensor:
    """The indices of the tokens that begin a word, and of the end of a sentence."""
    begins = model.vocabulary.beginnings()
    if not begins:
        raise UserError(
            "no token of the model begins with a mark of words, such as that of SentencePiece: its tokens are words, "
            "whose surprisals need no correction"
        )
    return torch.tensor([*begins, model.vocabulary.end], device=model.device)


@torch.no_grad()
def _score(
    model: LanguageModel, sentences: Sequence[CutSentence], begins: Tensor | None, beam: Beam | None
) -> Iterator[list[Word]]:
    targets = padded(model, [sentence.tokens for sentence in sentences])
    scores = _scores(model, targets, begins) if beam is None else scores_of_parses(targets, begins, beam)
    for sentence, of_sentence in zip(sentences, scores, strict=True):
        _, ends = of_sentence
        if ends is not None and not model.vocabulary.marks_first_word:
            ends[0] = 0  # every token begins a word at the beginning of a sentence
        yield _words(model.vocabulary, sentence, of_sentence)


def _scores(model: LanguageModel, targets: Tensor, begins: Tensor | None) -> list[Scores]:
    log_probs = model.log_probabilities(targets)
    of_tokens = at_targets(log_probs, targets)
    if begins is None:
        return [(row, None) for row in of_tokens]
    ends = log_probs[:, :, begins].double().logsumexp(2).cpu().numpy()
    return list(zip(of_tokens, ends, strict=True))


def _words(vocabulary: Vocabulary, sentence: CutSentence, scores: Scores) -> list[Word]:
    """The words of a sentence."""
    log_probs, ends = scores
    *starts, length = sentence.starts
    of_words = -np.add.reduceat(log_probs[:length], starts)
    if ends is not None:
        of_words -= np.diff(ends[starts], append=0.0)  # the end of a sentence is followed by nothing
    is_unknown = np.logical_or.reduceat(np.isin(sentence.tokens.numpy(), vocabulary.unknowns()), starts)
    sizes = np.diff(sentence.starts)
    words = list(map(Word, sentence.words, sizes.tolist(), of_words.tolist(), is_unknown.tolist()))
    for word in words:
        if not math.isfinite(word.surprisal):
            raise UserError(f"the model's probability of {word.text!r} is 0 or not a number")
    return words


def regions_of(texts: Sequence[str], words: Sequence[Word]) -> list[Word]:
    """The regions of a sentence, each of which is the sum of its words.

    Args:
        texts: the words of each region, separated by spaces; a region may be empty.
        words: what :func:`surprisals` yields for all of them in one sentence: its words and its end, which is in no
            region.

    Raises:
        UserError: the model reads other words than those between spaces.
    """
    lengths = [len(text.split()) for text in texts]
    if sum(lengths) != len(words) - 1:
        read = " ".join(word.text for word in words[:-1])
        raise UserError(f"the regions {' | '.join(texts)!r} have {sum(lengths)} words, but the model reads {read!r}")
    remaining, regions = iter(words), []
    for text, length in zip(texts, lengths, strict=True):
        inside = list(itertools.islice(remaining, length))
        surprisal = math.fsum(word.surprisal for word in inside)
        num_tokens = sum(word.num_tokens for word in inside)
        regions.append(Word(text, num_tokens, surprisal, any(word.is_unknown for word in inside)))
    return regions
