"""What a neural stack does while it reads a string: its strengths and vectors, and the positions of its buffers."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from fairseq_stack.hub.interface import TransductionHub
from fairseq_stack.inspection.sentences import Sentence, sentence_of_text
from fairseq_stack.modules.neural_stack import BufferedNeuralStack


@dataclass(frozen=True)
class Buffers:
    """The buffers of a network that takes T steps.

    Attributes:
        input_pops: i_t, which is popped from the input buffer after step t.
        output_pushes: o_t, with which the output of step t is written.
        input_positions: i_1 + .. + i_{t-1}: how many symbols have been popped before step t.
        output_positions: o_1 + .. + o_t: how much has been written after step t.
    """

    input_pops: tuple[float, ...]
    output_pushes: tuple[float, ...]
    input_positions: tuple[float, ...]
    output_positions: tuple[float, ...]


@dataclass(frozen=True)
class StackRun:
    """A neural stack on one string.

    Attributes:
        inputs: the words that it reads, with the blanks that a buffered network needs.
        outputs: the most probable words, as many; blanks where the task never scores one.
        pops: u_t in each of T steps.
        pushes: d_t.
        vectors: v_t, each of size m.
        readings: r_t, each of size m.
        buffers: None for a network without buffers, which takes a step for each word.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    pops: tuple[float, ...]
    pushes: tuple[float, ...]
    vectors: tuple[tuple[float, ...], ...]
    readings: tuple[tuple[float, ...], ...]
    buffers: Buffers | None


@torch.no_grad()
def stack_run(hub: TransductionHub, sentence: str | Sentence) -> StackRun:
    """What the network of a model, the first of an ensemble, does with a string.

    Raises:
        UserError: the string is empty or too long, or has a symbol that the dictionary lacks.
    """
    if isinstance(sentence, str):
        sentence = sentence_of_text(hub, sentence)
    encoder, tokens = hub.models[0].encoder, sentence.source
    dataset = hub.task.build_dataset_for_inference([tokens], [len(tokens)])
    net_input = dataset.collater([dataset[0]])["net_input"]
    batch = net_input["src_tokens"].to(hub.device)
    inputs, network, buffers = encoder.inputs(batch), encoder.network, None
    if isinstance(network, BufferedNeuralStack):
        steps, reading = encoder.num_steps(batch.size(1)), str(encoder.cfg.output_reading)
        logits, steps_taken = network(inputs, steps=steps, reading=reading)
        popped, written = steps_taken.input_pop[0].cumsum(0), steps_taken.output_push[0].cumsum(0)
        buffers = Buffers(
            tuple(steps_taken.input_pop[0].tolist()),
            tuple(steps_taken.output_push[0].tolist()),
            (0.0, *popped[:-1].tolist()),
            tuple(written.tolist()),
        )
    else:
        steps_taken = network(inputs)
        logits = steps_taken.output
    outputs = logits[0].argmax(1).cpu() + hub.tgt_dict.nspecial
    if hub.task.blank is not None:
        is_scored = hub.task.scored_positions(net_input["src_tokens"], net_input["src_lengths"])[0]
        outputs = outputs.where(is_scored, hub.tgt_dict.index(hub.task.blank))
    return StackRun(
        tuple(hub.src_dict[word] for word in batch[0].tolist()),
        tuple(hub.tgt_dict[word] for word in outputs.tolist()),
        tuple(steps_taken.pop[0].tolist()),
        tuple(steps_taken.push[0].tolist()),
        tuple(map(tuple, steps_taken.values[0].tolist())),
        tuple(map(tuple, steps_taken.reading[0].tolist())),
        buffers,
    )
