"""What tokens become before a network reads them, and its outputs over a vocabulary."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fairseq_stack.modules._shapes import check_mask, check_shape

ABSENT = -1
"""Stands for the vector of zeros where integers stand for one-hot vectors."""


class OneHot(nn.Module):
    """The numbers of one-hot vectors: a token's own, except for padding, which is the vector of zeros."""

    def __init__(self, padding_idx: int) -> None:
        super().__init__()
        self.padding_idx = padding_idx

    def forward(self, tokens: Tensor) -> Tensor:
        return tokens.masked_fill(tokens.eq(self.padding_idx), ABSENT)


class Output(nn.Linear):
    """The output layer.

    Args:
        size: the size of what it reads.
        vocab_size: how many logits there are.
        bias: whether it has a bias.
        compact: whether it has a buffer ``possible``, (vocab_size,): symbols that cannot occur, for which it is false,
            have the logit minus infinity.
        shared: a table whose rows are its weights; otherwise they are drawn as fairseq does, from N(0, 1/size).
    """

    possible: Tensor | None

    def __init__(
        self, size: int, vocab_size: int, *, bias: bool, compact: bool, shared: nn.Embedding | None = None
    ) -> None:
        super().__init__(size, vocab_size, bias=False)
        if shared is None:
            nn.init.normal_(self.weight, std=size**-0.5)
        else:
            self.weight = shared.weight
        if bias:
            self.bias = nn.Parameter(torch.zeros(vocab_size))
        self.register_buffer("possible", torch.ones(vocab_size, dtype=torch.bool) if compact else None)

    def forward(self, features: Tensor) -> Tensor:
        """Map features (..., size) to logits (..., vocab_size)."""
        logits = super().forward(features)
        return logits if self.possible is None else logits.masked_fill(~self.possible, -torch.inf)


def table(vocab_size: int, size: int, padding_idx: int) -> nn.Embedding:
    """Embeddings, initialised as fairseq does: N(0, 1/d), padding 0."""
    embeddings = nn.Embedding(vocab_size, size, padding_idx)
    nn.init.normal_(embeddings.weight, std=size**-0.5)
    nn.init.zeros_(embeddings.weight[padding_idx])
    return embeddings


def padding_of(
    tokens: Tensor, padding_mask: Tensor | None, padding_idx: int, name: str = "padding_mask"
) -> Tensor | None:
    """Where tokens (B, n) are padding, (B, n), in a tensor that states can keep; None if nowhere.

    Raises:
        ValueError: the tokens are not (B, n), or the mask has another shape or is not boolean.
    """
    check_shape("tokens", tokens, "B", "n")
    if padding_mask is None:
        padding_mask = tokens.eq(padding_idx)
    check_mask(name, padding_mask, tokens)
    # A compiled graph cannot depend on what the mask is.
    return padding_mask.clone() if torch.compiler.is_compiling() or padding_mask.any() else None
