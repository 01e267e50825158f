"""Stack tapes and trees of all attachments of a batch, without a loop over tokens.

Three facts make that possible. The constituent that ends at k begins where the constituent begins that k attaches to,
f_k = f_{r_k}, so all f are found by following pointers. A constituent that begins at s stays on the stack until a later
token k reaches to the left of it, f_k < s. And the nodes that end at k begin where those constituents begin that were
on the stack before, from f_k on.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad


def stack_tape_pytorch(attachments: Tensor) -> Tensor:
    """As ``stack_tape_reference``, with zeros above the diagonal: (B, T, T) of attachments (B, T).

    W_t[j] is the number of nodes with first token <= j <= last token <= t.
    """
    return nodes_pytorch(attachments).cumsum(2).tril_().cumsum(1)


def nodes_pytorch(attachments: Tensor) -> Tensor:
    """Whether there is a node from token a to token b, (B, T, T), at [:, b, a]."""
    tokens = torch.arange(attachments.size(1), device=attachments.device)
    first = _first_tokens(attachments)
    on_stack_before = pad(_starts(first), (0, 0, 1, 0))[:, :-1]
    return on_stack_before & (first.unsqueeze(2) <= tokens) & (attachments < tokens).unsqueeze(2)


def legal_pytorch(attachments: Tensor) -> Tensor:
    """Whether word t + 1 may attach to j, (B, T, T + 1), at [:, t, j]: to ends of constituents and to itself."""
    first = _first_tokens(attachments)
    starts = _starts(first)
    legal = pad(starts, (0, 2))[:, :, 1:]  # A constituent ends before the next begins.
    legal.diagonal(0, 1, 2).fill_(True)
    legal.diagonal(1, 1, 2).fill_(True)
    return legal.scatter_(2, _roots(first).unsqueeze(2), False)


def roots_pytorch(attachments: Tensor) -> Tensor:
    """As ``roots_of_sentences``."""
    return _roots(_first_tokens(attachments))


def _first_tokens(attachments: Tensor) -> Tensor:
    """f_k, (B, T): the first token of the constituent that ends at k when k has been attached."""
    first = attachments
    for _ in range(attachments.size(1).bit_length()):
        first = first.gather(1, first)
    return first


def _roots(first: Tensor) -> Tensor:
    """The last token up to t whose constituent begins at 0, (B, T)."""
    tokens = torch.arange(first.size(1), device=first.device)
    return torch.where(first == 0, tokens, 0).cummax(1).values


def _starts(first: Tensor) -> Tensor:
    """Whether a constituent that begins at s is on the stack after token t, (B, T, T), at [:, t, s]."""
    tokens = torch.arange(first.size(1), device=first.device)
    has_begun = tokens <= tokens.unsqueeze(1)
    swallowed = (first.unsqueeze(2) < tokens) & has_begun
    is_gone = swallowed.cumsum(1, dtype=torch.int32) > 0
    return has_begun & ~is_gone
