"""The buffers of Hao et al. (2018), Section 2.3: a queue to read the input from, and a queue to write the output to.

The input buffer is a queue that is filled before the first step, and the output buffer one that is read after the last.
``reference.py`` says so literally and is where to begin; ``pytorch.py`` reads at a position between two items
(``_marks.py`` keeps what is not finite in its place), and ``state.py`` takes one step of the input buffer.

An equation that changes, changes in these three and in ``_native/src/controller_buffer.h: ctrl_look_up``.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.nn.functional import pad

from .._arguments import Sizes, computation_dtype, without_autocast
from .._backends import Backend, Op, RandomTensor, by_name, choose_backend
from .._undefined import finite
from ._marks import marks_of_input, marks_of_output
from .pytorch import input_buffer_pytorch, output_buffer_pytorch
from .reference import input_buffer_reference, output_buffer_reference
from .state import InputBufferState

__all__ = ["FIRST_READS", "InputBufferState", "input_buffer", "output_buffer"]

INPUT_BACKENDS = by_name(
    Backend("pytorch", input_buffer_pytorch),
    Backend("reference", input_buffer_reference),
)
OUTPUT_BACKENDS = by_name(
    Backend("pytorch", output_buffer_pytorch),
    Backend("reference", output_buffer_reference),
)
FIRST_READS = {"dequeue-first": 1, "read-first": 0}
"""By the order of dequeuing and reading, the strength that is in front of what the first output reads."""


def input_buffer(pop: Tensor, items: Tensor, *, backend: str = "auto") -> Tensor:
    """Read T inputs from a queue that holds n items of strength 1 (Section 2.3 of Hao et al., 2018).

    The first input is item 1. Before input t > 1 is read, the strength i_{t-1} is popped from the front. This is linear
    interpolation at the position I_t = i_1 + ... + i_{t-1}:

        x_t = sum_j ReLU(1 - |I_t - (j - 1)|) item_j.

    From the position n - 1 on the input fades to the zero vector.

    Args:
        pop: (B, T), the strengths i_0, ..., i_{T-1} >= 0. The first column is not used.
        items: (B, n, m), the queue's items, of which the first is at the front.
        backend: ``"auto"``, ``"pytorch"`` (interpolation without a loop) or ``"reference"`` (the queue's equations).

    Returns:
        The inputs (B, T, m), in the dtype of the arguments; computed in float32 or float64, whatever autocast says.
        If i_t is not finite, they are NaN from the input on that is read next. If a component of an item is not finite,
        that component is NaN in all inputs that read the item. Other inputs, and gradients through them, are the same
        as with any other numbers in its place.

    Raises:
        ValueError: if an argument's shape, dtype, layout or device is wrong, or there is no such backend.
    """
    sizes = Sizes()
    sizes.check("pop", pop, "B T")
    sizes.check("items", items, "B n m")
    compute = choose_backend("input_buffer", backend, INPUT_BACKENDS, items.device)
    dtype = computation_dtype(items.dtype)
    with without_autocast(items.device):
        arguments = pad(pop[:, 1:], (1 if pop.size(1) else 0, 0)).to(dtype), items.to(dtype)
        return (compute(*map(finite, arguments)) + marks_of_input(*arguments)).to(items.dtype)


def output_buffer(
    push: Tensor, values: Tensor, length: int, *, reading: str = "dequeue-first", backend: str = "auto"
) -> Tensor:
    """Read outputs from a queue to which T vectors were written (Section 2.3 of Hao et al., 2018).

    With C_t = o_1 + ... + o_t, output j = 0, 1, ... is what the queue holds between the strengths j + e and j + e + 1:

        out_j = sum_t ReLU(min(C_t, j + e + 1) - max(C_{t-1}, j + e)) y_t.

    Args:
        push: (B, T), the strengths o_t >= 0.
        values: (B, T, m), the written vectors y_t.
        length: the number of outputs.
        reading: ``"dequeue-first"``: each output dequeues the strength 1 and then reads, so that the first unit of
            strength is never read, e = 1; ``"read-first"``: it reads and then dequeues, e = 0.
        backend: ``"auto"``, ``"pytorch"`` (closed form without a loop) or ``"reference"`` (the queue's equations).

    Returns:
        The outputs (B, length, m), in the dtype of the arguments; computed in float32 or float64, whatever autocast
        says. If o_t is not finite, the outputs are NaN that what is written before step t does not fill. If a component
        of y_t is not finite, that component is NaN in all outputs that read y_t. Other outputs, and gradients through
        them, are the same as with any other numbers in its place.

    Raises:
        ValueError: if an argument's shape, dtype, layout or device is wrong, ``length`` is not an integer from 0 on, or
            there is no such order of reading or backend.
    """
    sizes = Sizes()
    sizes.check("push", push, "B T")
    sizes.check("values", values, "B T m")
    if not isinstance(length, int) or length < 0:
        raise ValueError(f"length: expected an integer from 0 on, got {length!r}")
    if reading not in FIRST_READS:
        raise ValueError(f"reading: expected {' or '.join(map(repr, FIRST_READS))}, got {reading!r}")
    compute = choose_backend("output_buffer", backend, OUTPUT_BACKENDS, values.device)
    dtype, first = computation_dtype(values.dtype), FIRST_READS[reading]
    arguments = push.to(dtype), values.to(dtype)
    with without_autocast(values.device):
        outputs: Tensor = compute(*map(finite, arguments), length, first)
        return (outputs + marks_of_output(*arguments, length, first)).to(values.dtype)


def _input_example(random: RandomTensor, length: int) -> tuple[Any, ...]:
    return random(2, length), random(2, length, 5)


def _output_example(random: RandomTensor, length: int) -> tuple[Any, ...]:
    return random(2, length), random(2, length, 5), length


INPUT = Op("input_buffer", input_buffer, INPUT_BACKENDS, _input_example)
OUTPUT = Op("output_buffer", output_buffer, OUTPUT_BACKENDS, _output_example)
