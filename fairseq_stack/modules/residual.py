"""Residual connections with layer normalisation, before a sublayer or after it."""

from __future__ import annotations

from torch import Tensor, nn

from fairseq_stack.modules.dropout import Dropout


class ResidualLayer(nn.Module):
    """The base of layers: each sublayer has a residual connection and layer normalisation.

    Args:
        norm_first: whether the inputs of sublayers are normalised, and not their outputs.
        dropout: of the outputs of sublayers.
    """

    def __init__(self, norm_first: bool, dropout: float) -> None:
        super().__init__()
        self.norm_first = norm_first
        self.dropout = Dropout(dropout)

    def before(self, norm: nn.Module, inputs: Tensor) -> Tensor:
        """What a sublayer is given for these inputs."""
        normed: Tensor = norm(inputs) if self.norm_first else inputs
        return normed

    def after(self, norm: nn.Module, inputs: Tensor, outputs: Tensor) -> Tensor:
        """The inputs and outputs of a sublayer, added up."""
        added = inputs + self.dropout(outputs)
        normed: Tensor = added if self.norm_first else norm(added)
        return normed
