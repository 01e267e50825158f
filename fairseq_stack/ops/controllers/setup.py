"""What a controller and its memory are: the sizes and options that a loop over all steps needs to know."""

from __future__ import annotations

from dataclasses import dataclass

# As the kernels number them.
GATES = {"linear": 0, "rnn": 1, "lstm": 4, "gru": 3}
"""The controllers, and how many gates the cell of each computes, each of h numbers."""
MEMORIES = ("stack", "queue", "none")


@dataclass(frozen=True)
class ControllerSetup:
    """A controller and its memory.

    Attributes:
        controller: ``"linear"``, ``"rnn"``, ``"lstm"`` or ``"gru"``.
        memory: ``"stack"``, ``"queue"``, or ``"none"``: then r_t = 0.
        vector_size: m, the size of v_t and r_t.
        pushes_input: whether v_t = x_t.
        is_buffered: whether x_t is read from an input buffer.
    """

    controller: str
    memory: str
    vector_size: int
    pushes_input: bool = False
    is_buffered: bool = False

    @property
    def num_strengths(self) -> int:
        """How many rows are strengths."""
        return 4 if self.is_buffered else 2

    @property
    def num_sigmoids(self) -> int:
        """How many rows are strengths or of the pushed vector."""
        return self.num_strengths + (0 if self.pushes_input else self.vector_size)
