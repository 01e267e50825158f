"""``neural_stack`` and ``neural_stack_buffered``: transduction of strings into strings of the same length."""

from __future__ import annotations

from argparse import Namespace
from typing import TypeVar

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

Network = TypeVar("Network", NeuralStack, BufferedNeuralStack)

MODEL, BUFFERED_MODEL = "neural_stack", "neural_stack_buffered"


def _network(network_class: type[Network], options: Namespace, dictionary: Dictionary) -> Network:
    size = num_words(dictionary)
    settle(options, size)
    return network_class(
        size,
        options.vector_size,
        controller=str(options.controller),
        hidden_size=options.hidden_size,
        memory=str(options.memory),
        pushed=str(options.pushed),
    )


@register_model(MODEL, dataclass=NeuralStackConfig)
class NeuralStackModel(Transducer):
    """A controller with a stack or a queue, which takes a step for each symbol."""

    @classmethod
    def build_encoder(cls, options: Namespace, dictionary: Dictionary) -> NeuralStackEncoder:
        return NeuralStackEncoder(options, dictionary, _network(NeuralStack, options, dictionary))


@register_model(BUFFERED_MODEL, dataclass=BufferedNeuralStackConfig)
class BufferedNeuralStackModel(Transducer):
    """A controller with a stack or a queue between an input buffer and an output buffer."""

    reads_whole_input = True

    @classmethod
    def build_encoder(cls, options: Namespace, dictionary: Dictionary) -> BufferedNeuralStackEncoder:
        return BufferedNeuralStackEncoder(options, dictionary, _network(BufferedNeuralStack, options, dictionary))


register_presets(MODEL)
register_presets(BUFFERED_MODEL)
