"""What the causal language models have in common: logits for sequences, and for prompts that are continued."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from fairseq_stack.networks.vocabulary import padding_of


class CausalLM(nn.Module):
    """A language model that reads from left to right.

    Attributes:
        decoder: maps tokens and the state before them to what its ``output_projection`` reads and the state after them.
        padding_idx: the token that is padding.
    """

    decoder: Any
    padding_idx: int

    def forward(self, tokens: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """The logits (B, n, V) of what follows each of the tokens (B, n).

        Args:
            tokens: (B, n), of which the first one is that with which sequences begin.
            padding_mask: (B, n), true at padding, wherever it is (default: where tokens are ``padding_idx``).

        Raises:
            ValueError: the mask has another shape, or a sequence is longer than the model can read.
        """
        return self.extend(tokens, None, padding_mask)[0]

    def extend(self, tokens: Tensor, state: Any = None, padding_mask: Tensor | None = None) -> tuple[Tensor, Any]:
        """The logits as in :meth:`forward` for a prompt or further tokens, and the state after them.

        States are immutable. They have ``reorder(index)``, which chooses batch rows.

        Args:
            tokens: (B, n).
            state: the state before the tokens; None at the beginning.
            padding_mask: see :meth:`forward`; of these tokens only.

        Raises:
            ValueError: as :meth:`forward`, or the state has another number of rows.
        """
        features, state = self.decoder.extend(tokens, padding_of(tokens, padding_mask, self.padding_idx), state)
        return self.decoder.output_projection(features), state
