"""Sublayers: torch modules built on the stacks of :mod:`fairseq_stack.ops`, independent of fairseq.

Begin with :class:`.stateful_attention.StatefulAttention`, the base of all kinds: whole sequences, steps, and what a
kind has to say of itself. :class:`.stack_attention.StackAttention` adds Eqs. 4, 17 and 20 of DuSell & Chiang (2024),
and its subclasses have the actions of a kind: :mod:`.superposition` (Eq. 18), :mod:`.nondeterministic` (Eqs. 9-11, Eq.
12 and Eq. 19), :mod:`.symbols` (the stack without vectors of 2020 and 2022) and :mod:`.stratification`.
:mod:`.inspected` has what they say of a sentence, :mod:`.driven` what drives them, and :mod:`.operations` what a
supervised nondeterministic stack learns to do. :mod:`.stack_lstm` is an LSTM, or a simple recurrent network, that
drives such stacks. :mod:`.delta` is attention by the delta rule, and :mod:`.delta_stack` adds a stack to it.

:mod:`.neural_stack` is the controller of Hao et al. (2018) with its buffers. The syntactic language model of Murty et
al. (2023) is :mod:`.pushdown_transformer` (Eq. 7), with :mod:`.pushdown_attention` (Eq. 6), the :mod:`.attachment` head
(Eq. 5, Fig. 8), the beam of its parses (:mod:`.parsing`), :mod:`.positions` and :mod:`.distances`. :mod:`.beside` puts
a stack next to attention.

It imports torch and ``ops`` only. Kinds, which are records of these sublayers, are in :mod:`fairseq_stack.kinds`.
"""

from fairseq_stack.modules.attachment import (
    AttachmentHead,
    BilinearAttachmentHead,
    KeyedAttachmentHead,
    attachment_head,
    attachment_log_probabilities,
)
from fairseq_stack.modules.beside import BesideState, Gate, PushdownAttentionWithStack
from fairseq_stack.modules.delta import DeltaAttention
from fairseq_stack.modules.delta_stack import DeltaStackAttention
from fairseq_stack.modules.distances import DistanceScores
from fairseq_stack.modules.driven import DrivenStacks, driven_stacks
from fairseq_stack.modules.inspected import InspectedAutomaton, InspectedStack, InspectedStratification
from fairseq_stack.modules.neural_stack import BufferedNeuralStack, NeuralStack
from fairseq_stack.modules.nondeterministic import AutomatonStackAttention, NondeterministicStackAttention
from fairseq_stack.modules.operations import StackOperation, best_operations, operation_log_probability
from fairseq_stack.modules.parsing import Parses, parse_all
from fairseq_stack.modules.positions import InterleavedSinusoidalPositions
from fairseq_stack.modules.pushdown_attention import KeysAndValues, PushdownAttention
from fairseq_stack.modules.pushdown_transformer import (
    PushdownState,
    PushdownTransformer,
    PushdownTransformerLayer,
)
from fairseq_stack.modules.stack_attention import StackAttention
from fairseq_stack.modules.stack_lstm import StackLSTM, StackLSTMState
from fairseq_stack.modules.stateful_attention import StatefulAttention
from fairseq_stack.modules.stratification import StratificationStackAttention
from fairseq_stack.modules.superposition import SuperpositionStackAttention
from fairseq_stack.modules.symbols import SymbolStackAttention

__all__ = [
    "AttachmentHead",
    "AutomatonStackAttention",
    "BesideState",
    "BilinearAttachmentHead",
    "BufferedNeuralStack",
    "DeltaAttention",
    "DeltaStackAttention",
    "DistanceScores",
    "DrivenStacks",
    "Gate",
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
    "PushdownAttentionWithStack",
    "PushdownState",
    "PushdownTransformer",
    "PushdownTransformerLayer",
    "StackAttention",
    "StackLSTM",
    "StackLSTMState",
    "StackOperation",
    "StatefulAttention",
    "StratificationStackAttention",
    "SuperpositionStackAttention",
    "SymbolStackAttention",
    "attachment_head",
    "attachment_log_probabilities",
    "best_operations",
    "driven_stacks",
    "operation_log_probability",
    "parse_all",
]
