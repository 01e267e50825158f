"""``neural_stack`` and ``neural_stack_buffered``: transduction of strings into strings of the same length."""

from __future__ import annotations

from argparse import Namespace
from typing import Any, ClassVar, Self

from fairseq.models import FairseqEncoderModel, register_model
from fairseq.tasks import FairseqTask
from torch import Tensor

from fairseq_stack.errors import UserError
from fairseq_stack.models.checkpoints import CheckedLoading
from fairseq_stack.models.neural_stack.neural_stack_encoder import (
    BufferedNeuralStackEncoder,
    NeuralStackEncoder,
    Output,
)
from fairseq_stack.models.neural_stack.neural_stack_options import BufferedNeuralStackConfig, NeuralStackConfig, settle
from fairseq_stack.models.presets import register_presets
from fairseq_stack.models.pretrained import Pretrained
from fairseq_stack.models.shared_options import plain_namespace
from fairseq_stack.models.sizes import num_lstm_weights, require_memory
from fairseq_stack.models.vocabulary import num_words
from fairseq_stack.modules.neural_stack import BufferedNeuralStack, NeuralStack

MODEL, BUFFERED_MODEL = "neural_stack", "neural_stack_buffered"


class Transducer(CheckedLoading, Pretrained, FairseqEncoderModel):
    """A network that maps each string to a string of the same length, in one pass.

    Attributes:
        reads_whole_input: whether what an input is padded with, and how long it then is, changes the output.
        network_class: the class of the network.
        encoder_class: the class of fairseq's encoder around it.
    """

    reads_whole_input: ClassVar[bool]
    network_class: ClassVar[type[NeuralStack] | type[BufferedNeuralStack]]
    encoder_class: ClassVar[type[NeuralStackEncoder] | type[BufferedNeuralStackEncoder]]

    @classmethod
    def build_model(cls, args: Any, task: FairseqTask) -> Self:
        """Build the model that the options describe.

        Raises:
            UserError: for options that are out of range or cannot be combined, sizes beyond the memory of this
                machine, or a task that does not transduce strings.
        """
        if not getattr(task, "transduces", False):
            raise UserError(f"{args._name}: expected --task stack_transduction, got {type(task).__name__}")
        options = plain_namespace(args)
        settle(options, num_words(task.target_dictionary))
        network = _network(cls.network_class, options, task)
        return cls(cls.encoder_class(options, task.target_dictionary, network))

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None, **kwargs: Any) -> Output:
        """The logits at each position: see the encoder."""
        output: Output = self.encoder(src_tokens, src_lengths, **kwargs)
        return output


@register_model(MODEL, dataclass=NeuralStackConfig)
class NeuralStackModel(Transducer):
    """A controller with a stack or a queue, which takes a step for each symbol."""

    reads_whole_input = False
    network_class, encoder_class = NeuralStack, NeuralStackEncoder


@register_model(BUFFERED_MODEL, dataclass=BufferedNeuralStackConfig)
class BufferedNeuralStackModel(Transducer):
    """A controller with a stack or a queue between an input buffer and an output buffer."""

    reads_whole_input = True
    network_class, encoder_class = BufferedNeuralStack, BufferedNeuralStackEncoder


def _network(
    kind: type[NeuralStack] | type[BufferedNeuralStack], options: Namespace, task: FairseqTask
) -> NeuralStack | BufferedNeuralStack:
    size, vector, hidden = num_words(task.target_dictionary), options.vector_size, options.hidden_size
    rows = kind.num_strengths + vector + size
    if options.controller == "linear":
        require_memory({"--vector-size": rows * (size + vector)})
    else:
        require_memory({"--hidden-size": num_lstm_weights((), size + vector, hidden) + rows * hidden})
    return kind(
        size,
        vector,
        controller=str(options.controller),
        hidden_size=hidden,
        memory=str(options.memory),
        pushed=str(options.pushed),
    )


register_presets(MODEL)
register_presets(BUFFERED_MODEL)
