"""The beams of a batch of sentences, of a search that keeps finished hypotheses in their slots."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True)
class Beam:
    """The beams of B sentences after t steps: K slots each, best first, empty slots last.

    ``tokens`` starts with BOS; a hypothesis that finished earlier is filled up with EOS. All tensors are
    (B, K) except for ``tokens`` (B, K, t + 1), ``token_scores`` (B, K, t), and ``attention`` (B, K, t, S), where
    S is the padded source length (``None`` if the model returns no attention).
    """

    tokens: Tensor
    token_scores: Tensor
    attention: Tensor | None
    log_prob: Tensor
    length: Tensor
    finished: Tensor
    filled: Tensor

    @classmethod
    def initial(cls, batch_size: int, beam_size: int, bos: int, device: torch.device) -> Beam:
        """One hypothesis a sentence, with nothing generated yet, in slot 0."""
        shape = (batch_size, beam_size)
        filled = torch.zeros(shape, dtype=torch.bool, device=device)
        filled[:, 0] = True
        return cls(
            tokens=torch.full((*shape, 1), bos, dtype=torch.long, device=device),
            token_scores=torch.zeros((*shape, 0), device=device),
            attention=None,
            log_prob=torch.zeros(shape, device=device),
            length=torch.zeros(shape, dtype=torch.long, device=device),
            finished=torch.zeros_like(filled),
            filled=filled,
        )

    @property
    def growing(self) -> Tensor:
        """The slots (B, K) whose hypotheses can be extended."""
        return self.filled & ~self.finished

    def select_sentences(self, index: Tensor) -> Beam:
        """The beams of the sentences in ``index``."""
        chosen = {name: value[index] for name, value in vars(self).items() if value is not None}
        return replace(self, **chosen)
