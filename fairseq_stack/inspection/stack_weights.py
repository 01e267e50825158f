"""What nondeterministic stack attention reads: the weights W of the pushed vectors in each stack reading."""

from __future__ import annotations

from fairseq_stack.hub.interface import Hub
from fairseq_stack.inspection.sentences import Sentence
from fairseq_stack.inspection.stacks import inspect_stacks
from fairseq_stack.modules import InspectedStack


def stack_weights(hub: Hub, sentence: str | Sentence, translation: str | None = None) -> list[InspectedStack]:
    """The nondeterministic stacks of a model, with the ``weights`` (n, n + 1) that they have on a given sentence.

    Row t is the reading after input t, column 0 belongs to the bottom of the stack, and column i to the vector pushed
    at input i. Each row sums to 1.

    Args:
        hub: what ``from_pretrained`` returns, with one model.
        sentence: as for :func:`~fairseq_stack.inspection.stacks.read_sentence`.
        translation: likewise.

    Raises:
        UserError: see :func:`~fairseq_stack.inspection.stacks.read_sentence`.
    """
    return [stack for stack in inspect_stacks(hub, sentence, translation, num_runs=0) if stack.is_automaton]
