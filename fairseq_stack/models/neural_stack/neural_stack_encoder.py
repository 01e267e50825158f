"""fairseq's encoder around a neural stack: from tokens to one logit for each word of the task."""

from __future__ import annotations

from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.incremental_decoding_utils import with_incremental_state
from fairseq.models import FairseqEncoder
from torch import Tensor
from torch.nn.functional import embedding

from fairseq_stack.errors import UserError
from fairseq_stack.models.checkpoints import FINGERPRINT
from fairseq_stack.models.incremental import IncrementalState, KeepsState, count_step
from fairseq_stack.models.transducer import Output
from fairseq_stack.models.vocabulary import fingerprint, num_words
from fairseq_stack.modules.neural_stack import BufferedNeuralStack, Controller, NeuralStack


class OneHotEncoder(FairseqEncoder):
    """An encoder that reads one-hot vectors of the k words of a dictionary; its special symbols are vectors of zeros.

    Args:
        cfg: the options of the model, settled.
        dictionary: the dictionary of inputs and outputs.
        network: the network, of input size and output size k.
    """

    def __init__(self, cfg: Any, dictionary: Dictionary, network: Controller) -> None:
        super().__init__(dictionary)
        self.cfg = cfg
        self.network = network
        count = num_words(dictionary)
        one_hot = torch.zeros(len(dictionary), count)
        one_hot[dictionary.nspecial : dictionary.nspecial + count] = torch.eye(count)
        self.one_hot: Tensor
        self.register_buffer("one_hot", one_hot, persistent=False)
        self.register_buffer(FINGERPRINT, torch.tensor(fingerprint(dictionary)))

    def inputs(self, tokens: Tensor) -> Tensor:
        """The vectors (..., k) of tokens (...)."""
        return embedding(tokens, self.one_hot)


@with_incremental_state
class NeuralStackEncoder(KeepsState, OneHotEncoder):
    """A neural stack, which takes a step for each token."""

    network: NeuralStack

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor | None = None,
        incremental_state: IncrementalState | None = None,
        **kwargs: Any,
    ) -> Output:
        """The logits of the words at each position.

        Args:
            src_tokens: (B, n), with padding on the right only.
            src_lengths: not used.
            incremental_state: if given, the tokens are one more than in the last call, and only the last is read.
            kwargs: what else fairseq gives.

        Returns:
            ``encoder_out``: (B, n, k), or (B, 1, k) with ``incremental_state``.

        Raises:
            ValueError: reading incrementally, a step was left out.
        """
        if incremental_state is None:
            return {"encoder_out": self.network(self.inputs(src_tokens)).output}
        count_step(self, incremental_state, src_tokens.size(1))
        state = self.kept_state(incremental_state)
        if state is None:
            state = self.network.initial_state(len(src_tokens))
        step, state = self.network.step(self.inputs(src_tokens[:, -1]), state)
        self.keep_state(incremental_state, state)
        return {"encoder_out": step.output.unsqueeze(1)}


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
