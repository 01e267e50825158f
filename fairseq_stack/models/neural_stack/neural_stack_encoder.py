"""fairseq's encoder around a neural stack: from tokens to one logit for each word of the task."""

from __future__ import annotations

from typing import Any

import torch
from fairseq.data import Dictionary
from torch import Tensor
from torch.nn.functional import embedding

from fairseq_stack.errors import UserError
from fairseq_stack.models.transducer import Output, TransducerEncoder
from fairseq_stack.models.vocabulary import num_words
from fairseq_stack.modules.neural_stack import BufferedNeuralStack, Controller, NeuralStack


class OneHotEncoder(TransducerEncoder):
    """An encoder that reads one-hot vectors of the k words; special symbols of the dictionary are vectors of zeros."""

    def __init__(self, cfg: Any, dictionary: Dictionary, network: Controller) -> None:
        super().__init__(cfg, dictionary, network)
        count = num_words(dictionary)
        one_hot = torch.zeros(len(dictionary), count)
        one_hot[dictionary.nspecial : dictionary.nspecial + count] = torch.eye(count)
        self.one_hot: Tensor
        self.register_buffer("one_hot", one_hot, persistent=False)

    def inputs(self, tokens: Tensor) -> Tensor:
        """The vectors (..., k) of tokens (...)."""
        return embedding(tokens, self.one_hot)


class NeuralStackEncoder(OneHotEncoder):
    """A neural stack, which takes a step for each token."""

    network: NeuralStack

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None, **kwargs: Any) -> Output:
        """The logits of the words at each position, ``encoder_out`` (B, n, k), for tokens (B, n), padded at the end."""
        return {"encoder_out": self.network(self.inputs(src_tokens)).output}


class BufferedNeuralStackEncoder(OneHotEncoder):
    """A buffered neural stack, which decides itself when it reads a symbol and when it writes one."""

    network: BufferedNeuralStack

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None, **kwargs: Any) -> Output:
        """The logits of the words at each position, ``encoder_out`` (B, n, k), for tokens (B, n).

        Raises:
            UserError: the input is longer than the number of steps.
        """
        steps, reading = self.num_steps(src_tokens.size(1)), str(self.cfg.output_reading)
        outputs, _ = self.network(self.inputs(src_tokens), steps=steps, reading=reading)
        return {"encoder_out": outputs}

    def num_steps(self, length: int) -> int:
        """The number of steps for an input of this length.

        Raises:
            UserError: the input is longer.
        """
        factors = {"n": 1, "2n": 2}
        time_steps = self.cfg.time_steps
        steps = factors[time_steps] * length if time_steps in factors else int(time_steps)
        if steps < length:
            raise UserError(
                f"--time-steps {steps}: expected at least {length}, the length of the padded input, or n or 2n"
            )
        return steps
