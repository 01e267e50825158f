"""What a model that parses says about strings whose parses are known."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import repeat

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.pushdown import ScoredParse
from fairseq_stack.hub.batches import batches_of_lengths
from fairseq_stack.hub.interface import Hub, LanguageModelHub
from fairseq_stack.hub.parse_beams import network_of
from fairseq_stack.hub.strings import tokens_of
from fairseq_stack.modules import (
    AutomatonStackAttention,
    StackOperation,
    attachment_log_probabilities,
    best_operations,
    driven_stacks,
    parse_all,
)
from fairseq_stack.ops import legal_attachments, stack_tape
from fairseq_stack_preprocess.trees.operations import TreeOperation, is_tree, spans_of_operations
from fairseq_stack_preprocess.trees.spans import attachments as attachments_of


def require_parses(hub: Hub) -> LanguageModelHub:
    """The hub, if it holds one model that parses.

    Raises:
        UserError: it does not.
    """
    if not isinstance(hub, LanguageModelHub) or not hub.parses_sentences:
        raise UserError(
            "the checkpoint holds no model that parses: expected pushdown_transformer_lm; for a "
            "nondeterministic stack, evaluate-pushdown has --best-runs"
        )
    network_of(hub)
    return hub


@torch.no_grad()
def score_parses(
    hub: LanguageModelHub,
    strings: Sequence[Sequence[str]],
    attachments: Sequence[NDArray[np.int32]],
    *,
    beam_size: int,
    max_tokens: int,
    choices: Sequence[str] | None = None,
) -> Iterator[tuple[int, ScoredParse, ScoredParse | None]]:
    """Yield for each string its position and its scores with the gold parse and with a beam, shorter strings first.

    Args:
        hub: what ``from_pretrained`` returns.
        strings: strings of symbols.
        attachments: the gold parse of each, (n,).
        beam_size: number of parses kept; with 1 the model's decisions are greedy, and with 0 it makes none.
        max_tokens: the maximum number of tokens at a time, in all parses of a beam (a single string may have more).
        choices: the symbols of which the most probable one is found.

    Raises:
        UserError: the hub holds no single model that parses; a string is longer than the model accepts; or the model
            computes a probability that is not a number, or is 0, as for ``<unk>`` with a compact vocabulary.
    """
    require_parses(hub)
    indices = None if choices is None else torch.tensor([*map(hub.tgt_dict.index, choices)])
    for batch, targets in _batches(hub, strings, max_tokens // max(1, beam_size)):
        attached = torch.from_numpy(np.stack([attachments[number] for number in batch])).long().to(hub.device)
        gold = _with_gold_parses(hub, targets, attached, indices)
        of_beams = _with_beams(hub, targets, beam_size, indices) if beam_size else repeat(None)
        for number, with_gold, with_beam in zip(batch, gold, of_beams, strict=False):
            _check_probabilities(number, with_gold, with_beam)
            yield number, with_gold, with_beam


@torch.no_grad()
def best_parses(
    hub: Hub, strings: Sequence[Sequence[str]], *, beam_size: int, max_tokens: int, are_prefixes: bool
) -> Iterator[tuple[int, list[int]]]:
    """Yield for each string its position and the attachments of its best parse, shorter strings first.

    Args:
        hub: what ``from_pretrained`` returns.
        strings: strings of symbols.
        beam_size: number of parses kept.
        max_tokens: the maximum number of tokens at a time, in all parses of a beam (a single string may have more).
        are_prefixes: whether the strings continue.

    Raises:
        UserError: as for :func:`score_parses`.
    """
    hub = require_parses(hub)
    network = network_of(hub)
    for batch, targets in _batches(hub, strings, max_tokens // beam_size):
        for number, parses in zip(
            batch, parse_all(network, targets[:, :-1], beam_size=beam_size, are_prefixes=are_prefixes), strict=True
        ):
            if not math.isfinite(parses.log_probability):
                raise UserError(f"the model's probability of string {number + 1} is 0 or not a number")
            yield number, parses.attachments[0].tolist()


@torch.no_grad()
def score_best_runs(
    hub: Hub, strings: Sequence[Sequence[str]], *, max_tokens: int, choices: Sequence[str] | None = None
) -> Iterator[tuple[int, None, ScoredParse]]:
    """The same with the best run of a nondeterministic stack as the parse, and no scores with the gold parse.

    The tree of the best run is the one that :mod:`fairseq_stack_preprocess.trees.operations` describes. It is the best
    one among the runs that replace the top at ``</s>``, at the first word and at the last.

    Raises:
        UserError: as for :func:`score_parses`; or the hub holds no language model that has one nondeterministic stack,
            which can take all operations, and that reads no tape.
    """
    if not isinstance(hub, LanguageModelHub) or len(hub.models) != 1:
        raise UserError("best runs: expected one checkpoint of a language model")
    (model,) = hub.models
    if getattr(getattr(model.decoder, "network", None), "reads_tape", False):
        raise UserError("best runs: the words of this model depend on its parses, which its attachment head makes")
    indices = None if choices is None else torch.tensor([*map(hub.tgt_dict.index, choices)])
    for batch, targets in _batches(hub, strings, max_tokens):
        with driven_stacks(model) as stacks:
            output = model(targets.roll(1, 1))
        automata = [(x, inputs) for x, inputs in stacks.values() if isinstance(x, AutomatonStackAttention)]
        if len(automata) != 1:
            raise UserError(f"best runs: expected a model with one nondeterministic stack, got {len(automata)}")
        ((stack, inputs),) = automata
        log_words = model.get_normalized_probs(output, log_probs=True).double()
        nats = -log_words.gather(2, targets.unsqueeze(2)).squeeze(2).sum(1)
        for number, of_string, of_stack, log_next in zip(batch, nats.tolist(), inputs, log_words, strict=True):
            words = len(strings[number])
            found = _best_tree(stack, of_stack, words)
            attached = attachments_of(spans_of_operations(found), words)
            scored = ScoredParse(of_string, attached, _chosen(hub, log_next, indices), is_tree(found))
            _check_probabilities(number, scored)
            yield number, None, scored


def _best_tree(stack: AutomatonStackAttention, inputs: Tensor, words: int) -> list[TreeOperation]:
    """What the best run does with each word, for inputs (n, d_model) that end with those of the words."""
    allowed = torch.full((len(inputs),), int(StackOperation.ANY), device=inputs.device)
    allowed[: len(inputs) - words + 1] = StackOperation.REPLACE
    allowed[-1] = StackOperation.REPLACE
    try:
        best = best_operations(stack, inputs, allowed)
    except ValueError as error:
        raise UserError(f"best runs: {error}") from error
    ends = {0, words - 1}
    return [
        TreeOperation.BEGIN if place in ends else TreeOperation(operation)
        for place, operation in enumerate(best[len(inputs) - words :])
    ]


def _batches(
    hub: LanguageModelHub, strings: Sequence[Sequence[str]], max_tokens: int
) -> Iterator[tuple[list[int], Tensor]]:
    """Strings of one length: their numbers, and their tokens and ends (B, n + 1); shorter strings first."""
    tokens = [_encoded(hub, string, number) for number, string in enumerate(strings, start=1)]
    for batch in batches_of_lengths(list(map(len, tokens)), None, max_tokens, same_length=True):
        yield batch, torch.stack([tokens[number] for number in batch]).to(hub.device)


def _check_probabilities(number: int, *scored: ScoredParse | None) -> None:
    if not all(each is None or math.isfinite(each.nats) for each in scored):
        raise UserError(f"the model's probability of string {number + 1} is 0 or not a number")


def _encoded(hub: LanguageModelHub, string: Sequence[str], number: int) -> Tensor:
    """The tokens of a string and ``</s>``."""
    tokens = tokens_of(hub, string, number)
    if hub.tgt_dict.eos() in tokens[:-1]:
        raise UserError(f"string {number}: {hub.tgt_dict.eos_word} ends a string, and cannot be a symbol of one")
    return tokens


def _with_gold_parses(
    hub: LanguageModelHub, targets: Tensor, attached: Tensor, choices: Tensor | None
) -> Iterator[ScoredParse]:
    """The scores of strings (B, n + 1), the end included, with their attachments (B, n)."""
    before = pad(attached, (1, 0))  # Token 0 is ROOT.
    (model,) = hub.models
    output = model(targets.roll(1, 1), tape=stack_tape(before), next_words=targets)
    log_words = model.get_normalized_probs(output, log_probs=True).double()
    log_attached = attachment_log_probabilities(output[1]["attachment_scores"], legal_attachments(before))
    nats = -log_words.gather(2, targets.unsqueeze(2)).squeeze(2).sum(1)
    columns = (nats.tolist(), log_attached.argmax(2)[:, :-1].tolist(), log_words)
    for of_string, best, log_next in zip(*columns, strict=True):
        yield ScoredParse(of_string, best, _chosen(hub, log_next, choices), None)


def _with_beams(
    hub: LanguageModelHub, targets: Tensor, beam_size: int, choices: Tensor | None
) -> Iterator[ScoredParse]:
    network = network_of(hub)
    for parses in parse_all(network, targets[:, :-1], beam_size=beam_size, keep_next_words=choices is not None):
        chosen = _chosen(hub, parses.next_words, choices)
        yield ScoredParse(
            -float(parses.log_probability), parses.attachments[0].tolist(), chosen, bool(parses.are_trees[0])
        )


def _chosen(hub: LanguageModelHub, log_next: Tensor | None, choices: Tensor | None) -> list[str] | None:
    """The most probable choice at each place, from the log-probabilities (n + 1, V)."""
    if choices is None or log_next is None:
        return None
    best = choices[log_next[:, choices.to(log_next.device)].argmax(1).cpu()]
    return [hub.tgt_dict[symbol] for symbol in best.tolist()]
