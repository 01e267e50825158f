"""A small language model with a nondeterministic stack, and a batch for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from fairseq_stack.modules import NondeterministicStackAttention, StackLSTM

PAD, EOS = 1, 2
TOKENS = torch.tensor([[EOS, 5, 3, 4, 6], [EOS, 6, PAD, PAD, PAD], [EOS, 3, 4, PAD, PAD]])
TARGET = torch.tensor([[5, 3, 4, 6, EOS], [6, EOS, PAD, PAD, PAD], [3, 4, EOS, PAD, PAD]])
TASK: Any = SimpleNamespace(
    target_dictionary=SimpleNamespace(pad=lambda: PAD, eos=lambda: EOS), args=SimpleNamespace(sample_break_mode="eos")
)


class Model(nn.Module):
    """A stack, or an LSTM with one, that drives the words; an LSTM does not read the beginning."""

    def __init__(self, num_states: int = 2, *, lstm: bool = False, reading_in_output: bool = False) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, 8)
        stack = NondeterministicStackAttention(8, num_states, 2, 3, output=not lstm, bias=lstm)
        self.stack: nn.Module = StackLSTM(8, 8, [stack], reading_in_output=reading_in_output) if lstm else stack
        self.output = nn.Linear(8 + reading_in_output * stack.reading_size, 7)

    def forward(self, src_tokens: Tensor) -> Tensor:
        if not isinstance(self.stack, StackLSTM):
            return self.output(self.stack(self.embedding(src_tokens)))
        first = self.stack.initial_output(len(src_tokens)).unsqueeze(1)
        others, _ = self.stack(self.embedding(src_tokens[:, 1:]), return_state=False)
        return self.output(torch.cat([first, others], 1))

    @property
    def decoder(self) -> SimpleNamespace:
        """As a decoder of fairseq has them."""
        return SimpleNamespace(lstm=self.stack if isinstance(self.stack, StackLSTM) else None, output_layer=self.output)

    def get_normalized_probs(self, net_output: Tensor | tuple[Tensor, None], log_probs: bool) -> Tensor:
        logits = net_output[0] if isinstance(net_output, tuple) else net_output
        return logits.log_softmax(-1)
