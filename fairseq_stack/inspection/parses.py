"""What a model that parses does with a sentence: its parses, their stack tapes, and the attention to each token."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from fairseq_stack.errors import UserError
from fairseq_stack.hub.interface import Hub
from fairseq_stack.hub.language_model import CutSentence, Cutter
from fairseq_stack.hub.parse_beams import BEAM_SIZE, network_of
from fairseq_stack.hub.parsed_strings import require_parses
from fairseq_stack.inspection.brackets import bracketed, read_attachments
from fairseq_stack.modules import PushdownAttention, PushdownTransformer, attachment_log_probabilities, parse_all
from fairseq_stack.ops import legal_attachments, stack_tape

ROOT = "ROOT"


@dataclass(frozen=True, eq=False)
class InspectedParse:
    """A parse of n tokens.

    Attributes:
        tokens: ROOT and the tokens, n + 1.
        attachments: r_0, ..., r_n.
        tape: the rows W_0, ..., W_n of the stack tape, (n + 1, n + 1); zero above the diagonal.
        log_words: log p of each token, given those before it and their parse, and of the end, (n + 1,), in nats.
        log_attachments: log p of what each token attaches to, (n,).
        share: of the probability of all parses in the beam; None for a parse that was given.
        attention: of each layer that has attention over tokens, by its name in the model, such as
            ``decoder.network.layers.0``, (H, n + 1, n + 1): [:, t, j] is the weight of token j when token t + 1 is
            predicted.
    """

    tokens: tuple[str, ...]
    attachments: tuple[int, ...]
    tape: Tensor
    log_words: Tensor
    log_attachments: Tensor
    share: float | None
    attention: Mapping[str, Tensor]

    @property
    def log_probability(self) -> float:
        """log p of the tokens, their end and the parse."""
        return float(self.log_words.sum() + self.log_attachments.sum())

    @property
    def brackets(self) -> str:
        """The trees of the parse, see :func:`~fairseq_stack.inspection.brackets.bracketed`."""
        return bracketed(self.attachments[1:], self.tokens[1:])

    def mean_attention(self) -> Tensor:
        """The mean weights of all heads of all layers, (n + 1, n + 1).

        Raises:
            UserError: no layer has any.
        """
        if not self.attention:
            raise UserError("no layer of the model has attention over tokens")
        return torch.stack([weights.mean(0) for weights in self.attention.values()]).mean(0)

    def as_json(self) -> dict[str, Any]:
        """The numbers, as lists; a row of the tape has an entry for each token up to its own."""
        return {
            "brackets": self.brackets,
            "attachments": list(self.attachments),
            "log_probability": self.log_probability,
            "share": self.share,
            "log_words": self.log_words.tolist(),
            "log_attachments": self.log_attachments.tolist(),
            "tape": [row[: t + 1] for t, row in enumerate(self.tape.tolist())],
            "attention": [{"layer": layer, "weights": weights.tolist()} for layer, weights in self.attention.items()],
        }


@dataclass(frozen=True, eq=False)
class InspectedSentence:
    """The parses of a sentence, or of its first words.

    Attributes:
        sentence: the whole sentence.
        parses: the best parses of the beam, the best one first; or the one that was given.
        num_depths: the size of the model's tables of depths: it treats larger depths as the largest one.
    """

    sentence: CutSentence
    parses: tuple[InspectedParse, ...]
    num_depths: int

    def tokens_of(self, word: int) -> range:
        """The tokens of a word, counted from 1 as the word is; token 0 is ROOT."""
        start, stop = self.sentence.starts[word - 1 : word + 1]
        return range(start + 1, stop + 1)


@torch.no_grad()
def inspect_parses(
    hub: Hub,
    text: str,
    *,
    tree: str | None = None,
    beam_size: int = BEAM_SIZE,
    num_parses: int = 1,
    before: int | None = None,
) -> InspectedSentence:
    """What a model that parses does with a sentence.

    Args:
        hub: what ``from_pretrained`` returns, with one model that parses.
        text: the sentence.
        tree: its parse in brackets (default: the model's best parses).
        beam_size: number of parses kept.
        num_parses: the maximum number of parses to return.
        before: a word; only the words before it are parsed. None: the sentence is parsed with its end.

    Raises:
        UserError: the hub holds no model that parses; the sentence has no word, or the model cannot read it; or the
            tree is malformed, or has other words.
    """
    hub = require_parses(hub)
    network = network_of(hub)
    sentence = Cutter(hub).cut(text)
    if len(sentence.tokens) == 1:
        raise UserError("expected a sentence with at least one word")
    length = len(sentence.pieces) if before is None else sentence.starts[before - 1]
    tokens = sentence.tokens[:length].to(hub.device)
    if tree is None:
        (beam,) = parse_all(network, tokens[None], beam_size=beam_size, are_prefixes=before is not None)
        attachments = beam.attachments[:num_parses].tolist()
        shares = (beam.log_probabilities - beam.log_probability).exp().tolist()
    else:
        pieces = [stop - start for start, stop in zip(sentence.starts, sentence.starts[1:-1], strict=False)]
        attachments = [read_attachments(tree, sentence.words[:-1], pieces, "--tree")[:length]]
        shares = [None]
    parses = [
        _read(network, sentence.pieces[:length], tokens, attached, share, ends=before is None)
        for attached, share in zip(attachments, shares, strict=False)
    ]
    return InspectedSentence(sentence, tuple(parses), hub.models[0].decoder.cfg.pushdown_depths)


def _read(
    network: PushdownTransformer,
    pieces: tuple[str, ...],
    tokens: Tensor,
    attached: list[int],
    share: float | None,
    ends: bool,
) -> InspectedParse:
    """Have the network read tokens with a parse."""
    root, end = tokens.new_tensor([network.root]), tokens.new_tensor([network.end])
    inputs, targets = torch.cat([root, tokens])[None], torch.cat([tokens, end])[None]
    attachments = tokens.new_tensor([[0, *attached]])
    tape = stack_tape(attachments)
    with _recorded(network) as attention:
        hidden = network(inputs, tape)
    log_words = network.word_log_probabilities(hidden).gather(2, targets.unsqueeze(2)).squeeze(2)
    is_end = torch.arange(len(tokens) + 1, device=tokens.device)[None] == len(tokens)
    scores = network.attachment_scores(hidden, targets, tape)
    log_attachments = attachment_log_probabilities(scores, legal_attachments(attachments, is_end))
    chosen = torch.cat([attachments[:, 1:], tokens.new_zeros(1, 1)], 1)
    log_attachments = log_attachments.gather(2, chosen.unsqueeze(2)).squeeze(2)
    return InspectedParse(
        (ROOT, *pieces),
        (0, *attached),
        tape[0].cpu(),
        log_words[0, : len(tokens) + ends].double().cpu(),
        log_attachments[0, : len(tokens)].double().cpu(),
        share,
        attention,
    )


@contextmanager
def _recorded(network: PushdownTransformer) -> Iterator[dict[str, Tensor]]:
    """Record the attention of each layer in which tokens have weights."""
    recorded: dict[str, Tensor] = {}

    def record(number: int, attention: PushdownAttention, arguments: tuple[Tensor, Tensor]) -> None:
        recorded[f"decoder.network.layers.{number}"] = attention.weights(*arguments)[0].double().cpu()

    with ExitStack() as hooks:
        for number, layer in enumerate(network.layers):
            if isinstance(layer.attention, PushdownAttention):
                hooks.enter_context(layer.attention.register_forward_pre_hook(partial(record, number)))
        yield recorded
