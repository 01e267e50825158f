"""The head that chooses what the next word attaches to (Murty et al., 2023)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, pad

from fairseq_stack.modules.distances import DistanceScores
from fairseq_stack.modules.dropout import Dropout
from fairseq_stack.modules.pushdown_attention import Parametrization, check_parametrization, is_later
from fairseq_stack.modules.stack_attention import draw_linear
from fairseq_stack.ops import computation_dtype
from fairseq_stack.ops.depth_scores import composed_scores


class AttachmentHead(nn.Module, ABC):
    """The base of attachment heads. They score what token t + 1 may attach to when it is known.

    Its scores are for a query of token t and the word t + 1 with the keys of the tokens 0, ..., t, and with a key of
    the word itself.

    Args:
        model_size: d, the size of the final states h_t and of the embeddings of words.
    """

    def __init__(self, model_size: int) -> None:
        super().__init__()
        self.model_size = model_size

    def forward(self, hidden: Tensor, next_words: Tensor, tape: Tensor) -> Tensor:
        """The scores of all attachments of a sequence, with -inf where token t + 1 cannot attach to.

        Args:
            hidden: the final states h_0, ..., h_{n-1}, (B, n, d).
            next_words: the embeddings of the tokens 1, ..., n, (B, n, d).
            tape: W_0, ..., W_{n-1}, (B, n, n).

        Returns:
            (B, n, n + 1): [:, t, j] is the score of attaching token t + 1 to token j <= t + 1.
        """
        return self.scores(hidden, next_words, self.keys(hidden), tape)

    @abstractmethod
    def keys(self, hidden: Tensor) -> Tensor:
        """What the head keeps of tokens, (B, n, ...), for their final states (B, n, d)."""

    @abstractmethod
    def scores(self, hidden: Tensor, next_words: Tensor, keys: Tensor, tape: Tensor) -> Tensor:
        """The scores (B, m, n + 1) for the last m of n tokens: (B, m, d), (B, m, d), keys (B, n, ...), (B, m, n)."""


class BilinearAttachmentHead(AttachmentHead):
    """Eq. 5: h~ = MLP([x~; h_t]) has the score h_j^T W^T h~ for token j, and h~^T W^T h~ for the word itself.

    It does not see depths.

    Args:
        model_size: d.
        dropout: in the MLP.
    """

    def __init__(self, model_size: int, *, dropout: float = 0.0) -> None:
        super().__init__(model_size)
        self.query = _MLP(2 * model_size, model_size, model_size, dropout)
        self.bilinear = nn.Linear(model_size, model_size, bias=False)
        _initialize(self)

    def keys(self, hidden: Tensor) -> Tensor:
        return self.bilinear(hidden)

    def scores(self, hidden: Tensor, next_words: Tensor, keys: Tensor, tape: Tensor) -> Tensor:
        queries = self.query(torch.cat([next_words, hidden], 2))
        return _with_own(torch.matmul(queries, keys.transpose(1, 2)), (queries * self.bilinear(queries)).sum(2))


class KeyedAttachmentHead(AttachmentHead):
    """Fig. 8: keys are made of tokens and their depths.

    With q'_t and k'_j, two projections of h, and e_{tj}, the embedding of the depth W_t[j]:

        q_t = MLP_q([q'_t; x~]),    key_{tj} = MLP_s([k'_j; e_{tj}]),    own key_t = MLP_k([q'_t; x~]),

    and scores are scaled by the root of their size. The authors' code (``released``) has no biases in the projections,
    MLP_k([q_t; x~]), and instead of the scale the term ``q_t . W_p p_{j-(t+1)}``.

    The hidden layer of MLP_s is linear in k'_j and e_{tj} before its ReLU, so it is added up from a part of each token
    and a part of each depth; see :func:`fairseq_stack.ops.depth_scores.composed_scores`.

    Args:
        model_size: d.
        num_depths: D, the size of the table of depths; larger depths become D - 1. None: key_{tj} = k'_j.
        size: of queries and keys, 2 d if None.
        depth_size: of the embeddings of depths, d if None.
        released: as in the authors' code.
        dropout: in the MLPs; in MLP_s one mask for all keys of a query.
    """

    def __init__(
        self,
        model_size: int,
        num_depths: int | None,
        *,
        size: int | None = None,
        depth_size: int | None = None,
        released: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(model_size)
        self.size = size or 2 * model_size
        self.released = released
        depth_size = depth_size or model_size
        self.projection = nn.Linear(model_size, 2 * self.size, bias=not released)
        self.query = _MLP(self.size + model_size, self.size, self.size, dropout)
        self.own_key = _MLP(self.size + model_size, self.size, self.size, dropout)
        self.depths = None if num_depths is None else nn.Embedding(num_depths, depth_size)
        inner = self.size + depth_size
        self.key = None if num_depths is None else _MLP(inner, inner, self.size, dropout)
        self.distances = DistanceScores(model_size, 1, self.size) if released else None
        _initialize(self)

    def keys(self, hidden: Tensor) -> Tensor:
        keys = linear(hidden, *self._half(1))
        return keys if self.key is None else linear(keys, self.key.first.weight[:, : self.size])

    def scores(self, hidden: Tensor, next_words: Tensor, keys: Tensor, tape: Tensor) -> Tensor:
        projected = linear(hidden, *self._half(0))
        queries = self.query(torch.cat([projected, next_words], 2))
        own_keys = self.own_key(torch.cat([queries if self.released else projected, next_words], 2))
        scores = _with_own(self._scores_of_keys(queries, keys, tape), (queries * own_keys).sum(2))
        if self.distances is None:
            return scores / math.sqrt(self.size)
        return scores + self.distances(queries.unsqueeze(1), scores.size(2)).squeeze(1)

    def _scores_of_keys(self, queries: Tensor, keys: Tensor, tape: Tensor) -> Tensor:
        """(B, m, n). The second layer of MLP_s is applied to the query instead of all keys."""
        if self.key is None or self.depths is None:
            return torch.matmul(queries, keys.transpose(1, 2))
        first, second = self.key.first, self.key.second
        depths = linear(self.depths.weight, first.weight[:, self.size :], first.bias)
        inner_queries = self.key.dropout(torch.matmul(queries, second.weight))
        of_bias = torch.matmul(queries, second.bias).unsqueeze(2)
        return composed_scores(inner_queries, keys, depths.to(keys.dtype), tape) + of_bias

    def _half(self, number: int) -> tuple[Tensor, Tensor | None]:
        """Weight and bias of the projection to q' (0) or to k' (1)."""
        bias = self.projection.bias
        return self.projection.weight.chunk(2)[number], None if bias is None else bias.chunk(2)[number]


def attachment_head(
    model_size: int,
    num_depths: int | None,
    parametrization: Parametrization = "figures",
    *,
    size: int | None = None,
    depth_size: int | None = None,
    dropout: float = 0.0,
) -> AttachmentHead:
    """The head of Eq. 5, of Fig. 8, or of the authors' code; see the classes.

    Raises:
        ValueError: the table of depths is empty, the parametrization is unknown, or Eq. 5 is given sizes.
    """
    check_parametrization(parametrization, num_depths)
    if parametrization != "equations":
        released = parametrization == "released"
        options = {"size": size, "depth_size": depth_size}
        return KeyedAttachmentHead(model_size, num_depths, **options, released=released, dropout=dropout)
    if size is not None or depth_size is not None:
        raise ValueError("size, depth_size: the head of Eq. 5 has neither")
    return BilinearAttachmentHead(model_size, dropout=dropout)


def attachment_log_probabilities(scores: Tensor, legal: Tensor | None = None) -> Tensor:
    """The logarithm of the probability of each attachment, of the shape of the scores, (..., n + 1).

    Args:
        scores: what a head returns.
        legal: which attachments are possible; see :func:`fairseq_stack.ops.legal_attachments`. Their probabilities sum
            to 1, and the others have -inf. None: the softmax is over all tokens up to t + 1, as in the authors' code.
    """
    if legal is not None:
        scores = scores.masked_fill(~legal, -math.inf)
    return scores.log_softmax(-1, dtype=computation_dtype(scores.dtype))


def _with_own(scores: Tensor, of_words: Tensor) -> Tensor:
    """(B, m, n + 1) from the scores of keys (B, m, n) and of the words themselves (B, m); -inf behind them."""
    _, queries, keys = scores.shape
    together = torch.diagonal_scatter(pad(scores, (0, 1)), of_words, keys - queries + 1, 1, 2)
    return together.masked_fill(is_later(queries, keys + 1, scores.device), -math.inf)


class _MLP(nn.Module):
    """A linear layer, ReLU, dropout, and a linear layer."""

    def __init__(self, inputs: int, hidden: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(inputs, hidden), nn.Linear(hidden, outputs)
        self.dropout = Dropout(dropout)

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.second(self.dropout(torch.relu(self.first(inputs))))
        return outputs


def _initialize(head: nn.Module) -> None:
    """Draw the parameters: biases are 0."""
    for module in head.modules():
        if isinstance(module, nn.Linear):
            draw_linear(module)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)
