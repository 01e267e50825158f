"""The syntactic language model of Murty et al. (2023): a Transformer that predicts words and what they attach to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from fairseq_stack.modules.attachment import AttachmentHead, attachment_log_probabilities
from fairseq_stack.modules.dropout import Dropout
from fairseq_stack.modules.pushdown_attention import PushdownAttention
from fairseq_stack.modules.residual import ResidualLayer
from fairseq_stack.modules.stateful_attention import StatefulAttention, at_least_float32
from fairseq_stack.ops import StackTapeState
from fairseq_stack.ops._states import Rows

Attention = PushdownAttention | StatefulAttention


@dataclass(frozen=True, eq=False)
class PushdownState(Rows):
    """What the model keeps of the tokens that it has read. Immutable.

    Attributes:
        tape: the stack of the parse.
        layers: the state of each layer's attention.
        keys: what the attachment head keeps of each token, (B, t + 1, ...).
        hidden: the final state of the last token, (B, d).
    """

    tape: StackTapeState
    layers: tuple[Any, ...]
    keys: Tensor
    hidden: Tensor


class PushdownTransformerLayer(ResidualLayer):
    """Causal attention and a feed-forward network, each with a residual connection and layer normalisation.

    Args:
        attention: with the tape (:class:`PushdownAttention`) or without (:class:`StatefulAttention`).
        feedforward_size: the size of the hidden layer.
        activation: of the hidden layer.
        norm_first: whether layers are normalised before attention and the network, and not after.
        dropout: of the outputs of attention and the network.
    """

    def __init__(
        self, attention: Attention, feedforward_size: int, *, activation: nn.Module, norm_first: bool, dropout: float
    ) -> None:
        super().__init__(norm_first, dropout)
        size = attention.model_size
        self.attention = attention
        self.attention_norm, self.feedforward_norm = nn.LayerNorm(size), nn.LayerNorm(size)
        inner, outer = nn.Linear(size, feedforward_size), nn.Linear(feedforward_size, size)
        self.feedforward = nn.Sequential(inner, activation, outer)

    def forward(self, inputs: Tensor, tape: Tensor) -> Tensor:
        """The outputs (B, n, d) of the inputs (B, n, d) with the tape (B, n, n)."""
        normed = self.before(self.attention_norm, inputs)
        arguments = (normed, tape) if isinstance(self.attention, PushdownAttention) else (normed,)
        return self._rest(inputs, self.attention(*arguments))

    def step(self, inputs: Tensor, state: Any, row: Tensor) -> tuple[Tensor, Any]:
        """The output (B, d) of the next token and the state after it, with the row of the tape (B, t + 1)."""
        normed = self.before(self.attention_norm, inputs)
        if isinstance(self.attention, PushdownAttention):
            attended, state = self.attention.step(normed, state, row)
        else:
            attended, state = self.attention.step(normed, state)
        return self._rest(inputs, attended), state

    def _rest(self, inputs: Tensor, attended: Tensor) -> Tensor:
        inputs = self.after(self.attention_norm, inputs, attended)
        transformed = self.feedforward(self.before(self.feedforward_norm, inputs))
        return self.after(self.feedforward_norm, inputs, transformed)


class PushdownTransformer(nn.Module):
    """The probability of strings with their parses (Eq. 7 of Murty et al., 2023):

        p(x, y) = prod_k p(x_k | x_{<k}, W_{k-1}) p(r_k | x_{<=k}, W_{k-1}).

    Token t is read with the row W_t of the tape. Its final state predicts word t + 1, and when that is known, what it
    attaches to. ROOT is token 0.

    Args:
        embedding: maps symbols (...) to vectors (..., d).
        output: maps final states (..., d) to the logits of symbols (..., V).
        attentions: the attention of each layer, the first layer first; each with the tape or without.
        head: the attachment head.
        root: the symbol that is ROOT.
        end: the symbol that is the end of a sentence; it may be the same.
        feedforward_size: the size of the hidden layers of the feed-forward networks.
        activation: of these hidden layers.
        max_positions: how many learned positions there are, so many tokens can be read. None: there are no positions,
            as attention with distances needs none.
        norm_first: whether layers are normalised first, and also the final states.
        scale_embeddings: whether input embeddings are multiplied by the root of their size. The head's are not.
        dropout: of the input, and of the outputs of attention and feed-forward networks.
    """

    def __init__(
        self,
        embedding: nn.Module,
        output: nn.Module,
        attentions: Sequence[Attention],
        head: AttachmentHead,
        *,
        root: int,
        end: int,
        feedforward_size: int,
        activation: nn.Module | None = None,
        max_positions: int | None = None,
        norm_first: bool = True,
        scale_embeddings: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        size = head.model_size
        self.root, self.end = root, end
        self.embedding, self.output = embedding, output
        self.positions = None if max_positions is None else nn.Embedding(max_positions, size)
        if self.positions is not None:
            nn.init.normal_(self.positions.weight, std=1 / math.sqrt(size))
        self.scale = math.sqrt(size) if scale_embeddings else 1.0
        self.layers = nn.ModuleList(
            PushdownTransformerLayer(
                attention,
                feedforward_size,
                activation=activation or nn.ReLU(),
                norm_first=norm_first,
                dropout=dropout,
            )
            for attention in attentions
        )
        self.norm = nn.LayerNorm(size) if norm_first else nn.Identity()
        self.head = head
        self.dropout = Dropout(dropout)

    @property
    def reads_tape(self) -> bool:
        """Whether anything depends on the tape: a layer, or the attachment head."""
        modules = [self.head, *(layer.attention for layer in self._layers())]
        return any(getattr(module, "depths", None) is not None for module in modules)

    def forward(self, tokens: Tensor, tape: Tensor) -> Tensor:
        """The final states (B, n, d) of the tokens 0, ..., n - 1, (B, n), with their rows of the tape, (B, n, n).

        Raises:
            ValueError: there are more tokens than positions.
        """
        hidden = self._embed(tokens, first=0)
        for layer in self.layers:
            hidden = layer(hidden, tape)
        return self.norm(hidden)

    def word_log_probabilities(self, hidden: Tensor) -> Tensor:
        """log p(x_{t+1} | x_{<=t}, W_t) for all symbols, (..., V), from final states (..., d)."""
        return at_least_float32(self.output(hidden)).log_softmax(-1)

    def attachment_scores(self, hidden: Tensor, next_words: Tensor, tape: Tensor) -> Tensor:
        """The scores (B, n, n + 1) of what the tokens 1, ..., n, (B, n), attach to; see :class:`AttachmentHead`."""
        return self.head(hidden, self.embedding(next_words), tape)

    def initial_state(self, batch_size: int) -> PushdownState:
        """The state after ROOT."""
        device = next(self.parameters()).device
        tape = StackTapeState.initial(batch_size=batch_size, device=device)
        layers = tuple(layer.attention.initial_state(batch_size) for layer in self._layers())
        root = torch.full((batch_size,), self.root, device=device)
        hidden, layers = self._read(root, tape, layers)
        return PushdownState(tape, layers, self.head.keys(hidden.unsqueeze(1)), hidden)

    def step(self, state: PushdownState, words: Tensor, attachments: Tensor) -> PushdownState:
        """The state after one more word.

        Args:
            state: after t tokens and ROOT.
            words: the next word of each batch row, (B,).
            attachments: what it attaches to, (B,).

        Raises:
            ValueError: an attachment is illegal, or there are more tokens than positions.
        """
        tape = state.tape.step(attachments)
        hidden, layers = self._read(words, tape, state.layers)
        keys = torch.cat([state.keys, self.head.keys(hidden.unsqueeze(1))], 1)
        return PushdownState(tape, layers, keys, hidden)

    def next_words(self, state: PushdownState) -> Tensor:
        """log p of each symbol as the next one, (B, V)."""
        return self.word_log_probabilities(state.hidden)

    def next_attachments(self, state: PushdownState, words: Tensor, *, legal_only: bool = True) -> Tensor:
        """log p of what the next word (B,) attaches to, (B, t + 2), or the end of the sentence to ROOT.

        Illegal attachments have -inf.

        Args:
            state: before the word.
            words: the next word of each batch row.
            legal_only: whether the softmax is over legal attachments, and not over all tokens.
        """
        scores = self.head.scores(
            state.hidden.unsqueeze(1), self.embedding(words).unsqueeze(1), state.keys, state.tape.depths.unsqueeze(1)
        ).squeeze(1)
        legal = self.legal_attachments(state, words)
        log_probs = attachment_log_probabilities(scores, legal if legal_only else None)
        return log_probs.masked_fill(~legal, -math.inf)

    def legal_attachments(self, state: PushdownState, words: Tensor) -> Tensor:
        """Whether the next word (B,) may attach to each token, (B, t + 2), or the end of the sentence to its ROOT."""
        legal = state.tape.legal()
        to_root = torch.arange(legal.size(1), device=legal.device) == state.tape.roots().unsqueeze(1)
        return torch.where((words == self.end).unsqueeze(1), to_root, legal)

    def _layers(self) -> list[PushdownTransformerLayer]:
        return cast(list[PushdownTransformerLayer], list(self.layers))

    def _embed(self, tokens: Tensor, *, first: int) -> Tensor:
        """The input (B, n, d) of tokens (B, n), of which the first one has this position."""
        embedded = self.embedding(tokens) * self.scale
        if self.positions is not None:
            end, most = first + tokens.size(1), self.positions.num_embeddings
            if end > most:
                raise ValueError(f"tokens: expected at most {most}, the number of positions, got {end}")
            embedded = embedded + self.positions(torch.arange(first, end, device=tokens.device))
        return self.dropout(embedded)

    def _read(self, tokens: Tensor, tape: StackTapeState, states: Sequence[Any]) -> tuple[Tensor, tuple[Any, ...]]:
        """The final state (B, d) of tokens (B,) that the tape has already, and the states of the layers."""
        hidden = self._embed(tokens.unsqueeze(1), first=tape.depths.size(1) - 1).squeeze(1)
        after = []
        for layer, before in zip(self._layers(), states, strict=True):
            hidden, state = layer.step(hidden, before, tape.depths)
            after.append(state)
        return self.norm(hidden), tuple(after)
