"""The stack tape of Murty et al. (2023): attachments, and the tapes that they write.

Token 0 is ROOT, r_0 = 0; words are the tokens from 1 on. Word k attaches to r_k: to itself, or to the last token of a
constituent on the stack, which is then joined with everything above it and with k. Only the end of the sentence
attaches to ROOT, and only to it, which joins everything. It is then ROOT of the next sentence, if there is one: the
last token of the constituent that holds everything before. Pads after the end attach to themselves.

Every prefix of attachments builds an incremental parse, which is several trees side by side.

Begin with ``reference.py``, Algorithm 1 as the paper has it. ``pytorch.py`` computes all tapes of a batch at once, on
all devices, through the nodes of the trees; ``state.py`` takes one token at a time. A rule that changes, changes in
these three.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from .pytorch import legal_pytorch, roots_pytorch, stack_tape_pytorch
from .state import StackTapeState, illegal_attachment

__all__ = ["StackTapeState", "legal_attachments", "roots_of_sentences", "stack_tape"]


def stack_tape(attachments: Tensor) -> Tensor:
    """The tapes W_0, ..., W_{T-1} (Algorithm 1 of Murty et al., 2023), all at once.

    W_t[j] is the number of reductions that token j has taken part in after token t, the number of nodes above it:

        W_t[j] = |{nodes from a to b: a <= j <= b <= t}|.

    Args:
        attachments: r_0, ..., r_{T-1}, a LongTensor (B, T).

    Returns:
        The tapes, a LongTensor (B, T, T), of which row t is W_t; zero above the diagonal.

    Raises:
        ValueError: ``attachments`` is not such a tensor, or an attachment is illegal.
    """
    _check_attachments(attachments)
    return stack_tape_pytorch(attachments)


def legal_attachments(attachments: Tensor, ends: Tensor | None = None) -> Tensor:
    """What the next word may attach to after each token: the ends of constituents on the stack, and the word itself.

    Args:
        attachments: r_0, ..., r_{T-1}, a LongTensor (B, T).
        ends: (B, T), whether the end of a sentence follows token t. It may attach to ROOT of its sentence only.

    Returns:
        (B, T, T + 1), whether token t + 1 may attach to j, at [:, t, j].

    Raises:
        ValueError: ``attachments`` is not such a tensor, an attachment is illegal, or ``ends`` has another shape.
    """
    _check_attachments(attachments)
    legal = legal_pytorch(attachments)
    if ends is None:
        return legal
    if ends.shape != attachments.shape or ends.dtype != torch.bool:
        raise ValueError(
            f"ends: expected a BoolTensor of shape {tuple(attachments.shape)} like attachments, got shape "
            f"{tuple(ends.shape)} of {ends.dtype}"
        )
    to_root = torch.arange(legal.size(2), device=legal.device) == roots_pytorch(attachments).unsqueeze(2)
    return torch.where(ends.unsqueeze(2), to_root, legal)


def roots_of_sentences(attachments: Tensor) -> Tensor:
    """ROOT of the sentence that each token is in or ends before: what the end of the sentence attaches to.

    Args:
        attachments: r_0, ..., r_{T-1}, a LongTensor (B, T).

    Returns:
        (B, T): the last token, after token t, of the constituent that holds token 0. It is 0 in the first sentence.

    Raises:
        ValueError: ``attachments`` is not such a tensor, or an attachment is illegal.
    """
    _check_attachments(attachments)
    return roots_pytorch(attachments)


def _check_attachments(attachments: Tensor) -> None:
    if attachments.dim() != 2 or attachments.dtype != torch.long:
        raise ValueError(
            f"attachments: expected a LongTensor of shape (B, T), got shape {tuple(attachments.shape)} of "
            f"{attachments.dtype}"
        )
    tokens = torch.arange(attachments.size(1), device=attachments.device)
    is_token = (attachments >= 0) & (attachments <= tokens)
    # Only the first error counts, which is found whatever stands in its place and in that of later ones.
    possible = torch.where(is_token, attachments, tokens)
    allowed = _allowed(possible, tokens)
    wrong = ~(is_token & allowed.gather(2, possible.unsqueeze(2)).squeeze(2))
    if bool(wrong.any()):
        row, token = wrong.nonzero()[0].tolist()
        expected = allowed[row, token].nonzero().squeeze(1)
        raise illegal_attachment(row, token, int(attachments[row, token]), expected)


def _allowed(attachments: Tensor, tokens: Tensor) -> Tensor:
    """Whether token k may attach to j, (B, T, T), at [:, k, j]; to ROOT as the end of its sentence."""
    allowed = pad(legal_pytorch(attachments), (0, 0, 1, 0))[:, :-1, :-1]
    roots = pad(roots_pytorch(attachments), (1, 0))[:, :-1]
    return allowed | (tokens == roots.unsqueeze(2))
