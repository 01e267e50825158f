"""The options of neural stacks: their declaration, and how they are settled before a model is built.

fairseq reads the types of options at run time: annotations must not be postponed, and optional ones be spelled
``Optional``.
"""

# ruff: noqa: UP045

from argparse import Namespace
from dataclasses import dataclass, field
from typing import Optional

from fairseq.dataclass import ChoiceEnum, FairseqDataclass

from fairseq_stack.errors import UserError
from fairseq_stack.models.shared_options import check_at_least_one
from fairseq_stack.modules.neural_stack import CELLS, MEMORIES, PUSHED
from fairseq_stack.ops.buffers import FIRST_READS

VECTOR_SIZE = 2
CONTROLLERS = ChoiceEnum(list(CELLS))
MEMORY_KINDS = ChoiceEnum(list(MEMORIES))
PUSHED_KINDS = ChoiceEnum(list(PUSHED))
OUTPUT_READINGS = ChoiceEnum(list(FIRST_READS))


@dataclass
class NeuralStackConfig(FairseqDataclass):
    """The options of a controller with a stack or a queue; the presets set them as in the paper."""

    controller: CONTROLLERS = field(  # type: ignore[valid-type]
        default="linear", metadata={"help": "the controller: linear, or a recurrent cell before the linear layer"}
    )
    memory: MEMORY_KINDS = field(  # type: ignore[valid-type]
        default="stack",
        metadata={
            "help": "what the controller pushes to; with none, every stack reading is 0 and all parameters remain"
        },
    )
    pushed: PUSHED_KINDS = field(  # type: ignore[valid-type]
        default="vector", metadata={"help": "push a vector that the controller computes, or the input itself"}
    )
    vector_size: Optional[int] = field(
        default=None,
        metadata={"help": "size of the pushed vectors (default: 2; with --pushed input, the number of symbols)"},
    )
    hidden_size: int = field(default=10, metadata={"help": "size of the hidden state of a recurrent controller"})


@dataclass
class BufferedNeuralStackConfig(NeuralStackConfig):
    """The options of a network that reads its input from a queue, and writes its output to one."""

    time_steps: str = field(
        default="n",
        metadata={"help": "number of time steps: n, the length of the padded input; 2n, twice as many; or a number"},
    )
    output_reading: OUTPUT_READINGS = field(  # type: ignore[valid-type]
        default="dequeue-first",
        metadata={
            "help": "how each output is read from the output buffer: dequeue a unit of strength, then read, as in the "
            "released code; or read, then dequeue"
        },
    )


def settle(options: Namespace, count: int) -> None:
    """Fill in the size of the vectors, and check sizes, for a task with ``count`` words.

    Raises:
        UserError: a size or a number of steps is out of range, or inputs are pushed as vectors of another size.
    """
    if options.vector_size is None:
        options.vector_size = count if options.pushed == "input" else VECTOR_SIZE
    check_at_least_one(options, "vector_size", "hidden_size")
    if options.pushed == "input" and options.vector_size != count:
        raise UserError(
            f"--pushed input: expected --vector-size {count}, the number of symbols, got {options.vector_size}; leave "
            "--vector-size out"
        )
    steps = getattr(options, "time_steps", "n")
    if steps not in ("n", "2n") and not steps.isdecimal():
        raise UserError(f"--time-steps: expected n, 2n or a number, got {steps}")
