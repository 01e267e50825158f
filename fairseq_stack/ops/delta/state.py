"""The memory of the delta rule, one step or several steps at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from .._arguments import Sizes, computation_dtype, without_autocast
from .._states import BatchState, check_fits_state
from .._undefined import finite, from_then_on, mark
from .pytorch import extend


@dataclass(frozen=True, eq=False)
class DeltaRuleState(BatchState):
    """The memories of a batch after t steps. Immutable.

    Attributes:
        memory: (B, k, v), S_t, with numbers in the place of what is undefined.
        marks: (B, v), NaN for the columns of S_t that are undefined, otherwise 0.
    """

    memory: Tensor
    marks: Tensor

    @classmethod
    def initial(
        cls,
        *,
        batch_size: int,
        key_size: int,
        value_size: int,
        dtype: torch.dtype | None = None,
        device: torch.device | None = None,
    ) -> Self:
        """S_0 = 0."""
        dtype = computation_dtype(dtype or torch.get_default_dtype())
        memory = torch.zeros(batch_size, key_size, value_size, dtype=dtype, device=device)
        return cls(memory, memory.new_zeros(batch_size, value_size))

    def step(
        self, query: Tensor, keys: Tensor, values: Tensor, strengths: Tensor, log_decay: Tensor | None = None
    ) -> tuple[Tensor, Self]:
        """One step of :func:`.delta_rule`: the reading o_t, (B, v), and the next state.

        Args:
            query: (B, k).
            keys: (B, U, k).
            values: (B, U, v).
            strengths: (B, U).
            log_decay: (B,), or None for no decay.

        Raises:
            ValueError: if an argument's shape, dtype, layout or device is wrong.
        """
        decays = None if log_decay is None else log_decay.unsqueeze(1)
        readings, state = self.extend(
            query.unsqueeze(1), keys.unsqueeze(1), values.unsqueeze(1), strengths.unsqueeze(1), decays
        )
        return readings[:, 0], state

    def extend(
        self, queries: Tensor, keys: Tensor, values: Tensor, strengths: Tensor, log_decays: Tensor | None = None
    ) -> tuple[Tensor, Self]:
        """n steps: the readings, (B, n, v), and the last state. It takes the arguments of :func:`.delta_rule`.

        Raises:
            ValueError: if an argument's shape, dtype, layout or device is wrong.
        """
        check_updates(queries, keys, values, strengths, log_decays)
        check_fits_state("values", values, self.memory)
        expected = (len(queries), queries.size(2), values.size(3))
        if self.memory.shape != expected:
            raise ValueError(f"state: expected a memory of shape {expected}, got {tuple(self.memory.shape)}")
        dtype = self.memory.dtype
        marks = marks_of_updates(keys, values, strengths, log_decays).to(dtype) + self.marks.unsqueeze(1)
        decays = None if log_decays is None else finite(log_decays).to(dtype)
        asked, written, contents, amounts = (finite(x).to(dtype) for x in (queries, keys, values, strengths))
        compute = _step if queries.size(1) == 1 else extend
        with without_autocast(self.memory.device):
            readings, memory = compute(self.memory, asked, written, contents, amounts, decays)
        last = marks[:, -1] if marks.size(1) else self.marks
        marks = marks + mark(queries).sum(2, keepdim=True)
        return (readings + marks).to(values.dtype), type(self)(memory, last)


def _step(
    memory: Tensor, queries: Tensor, keys: Tensor, values: Tensor, strengths: Tensor, log_decays: Tensor | None
) -> tuple[Tensor, Tensor]:
    """As ``pytorch.extend``, for one step."""
    if log_decays is not None:
        memory = log_decays.unsqueeze(2).exp() * memory
    for j in range(strengths.size(2)):
        key, value, strength = keys[:, 0, j], values[:, 0, j], strengths[:, 0, j, None]
        error = value.unsqueeze(1) - key.unsqueeze(1) @ memory
        memory = memory + (strength * key).unsqueeze(2) @ error
    return queries @ memory / math.sqrt(queries.size(2)), memory


def marks_of_updates(keys: Tensor, values: Tensor, strengths: Tensor, log_decays: Tensor | None) -> Tensor:
    """Marks for the columns of the memories S_1..S_n, (B, n, v): NaN from the first update on that is not finite."""
    marks = mark(keys).flatten(2).sum(2) + mark(strengths).sum(2)
    if log_decays is not None:
        marks = marks + mark(log_decays)
    return from_then_on(mark(values).sum(2) + marks.unsqueeze(2))


def check_updates(queries: Tensor, keys: Tensor, values: Tensor, strengths: Tensor, log_decays: Tensor | None) -> None:
    """Check the arguments of the delta rule.

    Raises:
        ValueError: naming the argument, what was expected and what was got.
    """
    sizes = Sizes()
    sizes.check("queries", queries, "B n k")
    sizes.check("keys", keys, "B n U k")
    sizes.check("values", values, "B n U v")
    sizes.check("strengths", strengths, "B n U")
    if log_decays is not None:
        sizes.check("log_decays", log_decays, "B n")
    for letter, meaning in {"U": "updates a step", "k": "components of a key"}.items():
        if sizes[letter] < 1:
            raise ValueError(f"keys: expected at least 1 for {letter}, the {meaning}, got {sizes[letter]}")
