"""``neural_stack`` and ``neural_stack_buffered``: transduction of strings into strings of the same length."""

from __future__ import annotations

from argparse import Namespace
from typing import Any, ClassVar

from fairseq.data import Dictionary
from fairseq.models import register_model

from fairseq_stack.models.neural_stack.neural_stack_encoder import (
    BufferedNeuralStackEncoder,
    NeuralStackEncoder,
)
from fairseq_stack.models.neural_stack.neural_stack_options import BufferedNeuralStackConfig, NeuralStackConfig, settle
from fairseq_stack.models.presets import register_presets
from fairseq_stack.models.transducer import Transducer
from fairseq_stack.models.vocabulary import num_words
from fairseq_stack.modules.neural_stack import BufferedNeuralStack, NeuralStack

MODEL, BUFFERED_MODEL = "neural_stack", "neural_stack_buffered"


class _NeuralStackTransducer(Transducer):
    """A transducer with a neural stack or queue.

    Attributes:
        network_class: the class of the network.
        encoder_class: the class of fairseq's encoder around it.
    """

    network_class: ClassVar[type[NeuralStack] | type[BufferedNeuralStack]]
    encoder_class: ClassVar[type[NeuralStackEncoder] | type[BufferedNeuralStackEncoder]]

    @classmethod
    def build_encoder(
        cls, options: Namespace, dictionary: Dictionary
    ) -> NeuralStackEncoder | BufferedNeuralStackEncoder:
        size = num_words(dictionary)
        settle(options, size)
        network: Any = cls.network_class(
            size,
            options.vector_size,
            controller=str(options.controller),
            hidden_size=options.hidden_size,
            memory=str(options.memory),
            pushed=str(options.pushed),
        )
        return cls.encoder_class(options, dictionary, network)


@register_model(MODEL, dataclass=NeuralStackConfig)
class NeuralStackModel(_NeuralStackTransducer):
    """A controller with a stack or a queue, which takes a step for each symbol."""

    reads_whole_input = False
    network_class, encoder_class = NeuralStack, NeuralStackEncoder


@register_model(BUFFERED_MODEL, dataclass=BufferedNeuralStackConfig)
class BufferedNeuralStackModel(_NeuralStackTransducer):
    """A controller with a stack or a queue between an input buffer and an output buffer."""

    reads_whole_input = True
    network_class, encoder_class = BufferedNeuralStack, BufferedNeuralStackEncoder


register_presets(MODEL)
register_presets(BUFFERED_MODEL)
