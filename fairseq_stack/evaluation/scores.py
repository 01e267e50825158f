"""A score, with a line that says what it is and how it was computed."""

from __future__ import annotations

from dataclasses import dataclass

from fairseq_stack.version import __version__


@dataclass(frozen=True)
class Score:
    """A score that can be compared with another one if the signatures are equal.

    Attributes:
        name: what was measured.
        value: the number.
        unit: the words that follow the number; "" if there are none.
        data: what it was measured on.
        method: how it was computed, as ``option:value`` separated by ``|``; the program's version comes last.
    """

    name: str
    value: float
    unit: str
    data: str
    method: str

    @property
    def signature(self) -> str:
        """Data, options and version in the form of sacrebleu's signatures: ``data:...|option:value|version:...``."""
        return f"data:{self.data}|{self.method}"


def method_of(**options: object) -> str:
    """The method of a score that fairseq_stack itself computes with these options."""
    return "|".join(f"{name}:{value}" for name, value in {**options, "version": f"fairseq_stack-{__version__}"}.items())
