"""The stack tape one token at a time."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from .._states import BatchState


@dataclass(frozen=True, eq=False)
class StackTapeState(BatchState):
    """The stacks of a batch after token t, with the row W_t of the tape. Immutable.

    Attributes:
        depths: the row W_t, a LongTensor (B, t + 1).
        ends: (B, t + 1), whether a token is the last of a constituent on the stack.
    """

    depths: Tensor
    ends: Tensor

    @classmethod
    def initial(cls, *, batch_size: int, device: torch.device | str | None = None) -> StackTapeState:
        """The state after token 0, which is ROOT."""
        depths = torch.zeros(batch_size, 1, dtype=torch.long, device=device)
        return cls(depths, torch.ones_like(depths, dtype=torch.bool))

    def legal(self) -> Tensor:
        """What word t + 1 may attach to, (B, t + 2): the ends of constituents except ROOT, and itself."""
        legal = pad(self.ends, (0, 1), value=True)
        return legal.scatter_(1, self.roots().unsqueeze(1), False)

    def roots(self) -> Tensor:
        """ROOT of the sentence, (B,), to which its end attaches: the last token of the first constituent."""
        return self.ends.int().argmax(1)

    def step(self, attachments: Tensor) -> StackTapeState:
        """The state after token t + 1 (Algorithm 1 of Murty et al., 2023).

        Args:
            attachments: (B,), r_{t+1}: where :meth:`legal` is true, or one of :meth:`roots` for the end of the
                sentence. Pads after the end attach to themselves.

        Raises:
            ValueError: ``attachments`` is not a LongTensor (B,), or an attachment is illegal.
        """
        batch_size, token = self.depths.shape
        if attachments.shape != (batch_size,) or attachments.dtype != torch.long:
            raise ValueError(
                f"attachments: expected a LongTensor of shape ({batch_size},), got shape {tuple(attachments.shape)} of "
                f"{attachments.dtype}"
            )
        self._check(attachments)
        chosen = attachments.unsqueeze(1)
        # How many constituents end before each token, and before the new one.
        place = pad(self.ends.cumsum(1), (1, 0))
        gain = place - place.gather(1, chosen) + 1
        gain[:, token] -= 1  # The new token is in the constituent on top, not in a reduction of its own.
        gain = gain.clamp(min=0) * (chosen < token)
        tokens = torch.arange(token + 1, device=chosen.device)
        is_reduced = (tokens >= chosen) & (tokens < token)
        return StackTapeState(pad(self.depths, (0, 1)) + gain, pad(self.ends, (0, 1), value=True) & ~is_reduced)

    def _check(self, attachments: Tensor) -> None:
        token = self.depths.size(1)
        allowed = pad(self.ends, (0, 1), value=True)
        is_token = (attachments >= 0) & (attachments <= token)
        wrong = ~(is_token & allowed.gather(1, attachments.clamp(0, token).unsqueeze(1)).squeeze(1))
        if bool(wrong.any()):
            row = int(wrong.nonzero()[0])
            expected = allowed[row].nonzero().squeeze(1)
            raise illegal_attachment(row, token, int(attachments[row]), expected)


def illegal_attachment(row: int, token: int, attached: int, expected: Tensor) -> ValueError:
    """The error for a token that attaches to where it may not.

    Args:
        row: the row of the batch.
        token: the token k.
        attached: its r_k.
        expected: what it may attach to.
    """
    choices = " or ".join(map(str, expected.tolist()))
    return ValueError(f"attachments: token {token} of row {row} attaches to {attached}; expected {choices}")
