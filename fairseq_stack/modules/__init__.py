"""Sublayers: torch modules built on the stacks of :mod:`fairseq_stack.ops`, independent of fairseq."""

from fairseq_stack.modules.attachment import (
    AttachmentHead,
    BilinearAttachmentHead,
    KeyedAttachmentHead,
    attachment_head,
    attachment_log_probabilities,
)
from fairseq_stack.modules.distances import DistanceScores
from fairseq_stack.modules.inspected import InspectedAutomaton, InspectedStack, InspectedStratification
from fairseq_stack.modules.neural_stack import BufferedNeuralStack, NeuralStack
from fairseq_stack.modules.nondeterministic import AutomatonStackAttention, NondeterministicStackAttention
from fairseq_stack.modules.parsing import Parses, Sample, parse, parse_all, sample
from fairseq_stack.modules.positions import InterleavedSinusoidalPositions
from fairseq_stack.modules.pushdown_attention import KeysAndValues, PushdownAttention
from fairseq_stack.modules.pushdown_transformer import (
    PushdownState,
    PushdownTransformer,
    PushdownTransformerLayer,
)
from fairseq_stack.modules.stack_attention import StackAttention
from fairseq_stack.modules.stack_lstm import StackLSTM, StackLSTMState
from fairseq_stack.modules.stratification import StratificationStackAttention
from fairseq_stack.modules.superposition import SuperpositionStackAttention
from fairseq_stack.modules.symbols import SymbolStackAttention

__all__ = [
    "AttachmentHead",
    "AutomatonStackAttention",
    "BilinearAttachmentHead",
    "BufferedNeuralStack",
    "DistanceScores",
    "InspectedAutomaton",
    "InspectedStack",
    "InspectedStratification",
    "InterleavedSinusoidalPositions",
    "KeyedAttachmentHead",
    "KeysAndValues",
    "NeuralStack",
    "NondeterministicStackAttention",
    "Parses",
    "PushdownAttention",
    "PushdownState",
    "PushdownTransformer",
    "PushdownTransformerLayer",
    "Sample",
    "StackAttention",
    "StackLSTM",
    "StackLSTMState",
    "StratificationStackAttention",
    "SuperpositionStackAttention",
    "SymbolStackAttention",
    "attachment_head",
    "attachment_log_probabilities",
    "parse",
    "parse_all",
    "sample",
]
