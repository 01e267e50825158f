"""The nondeterministic stack one step at a time, as decoders and stack RNNs need it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .._arguments import Sizes, computation_dtype
from .._native import library
from .._states import check_fits_state, check_index
from .._transforms import is_transformed
from ._columns import join_transitions
from ._native_columns import NativeColumns
from ._tracked_columns import TrackedColumns


@dataclass(frozen=True, eq=False)
class NondeterministicStackState:
    """The stack after t steps, for a batch of B sequences; immutable.

    A step takes O(Q^3 S^2 t^2) time and a state O(Q^2 S^2 t^2) space for each sequence. Autograd differentiates through
    the steps, and ``torch.func`` transforms them. Where neither does, on the CPU, they run on the compiled kernels:
    then a step copies nothing of the steps before, and reordering moves t integers for each sequence. Make the first
    state with ``initial``.

    Attributes:
        num_states: Q.
        num_symbols: S.
        like: an empty tensor with the device of the inputs, and with their dtype or a wider one.
        columns: the columns of all steps so far, computed in float64.
    """

    num_states: int
    num_symbols: int
    like: Tensor
    columns: TrackedColumns | NativeColumns

    @classmethod
    def initial(
        cls, bottom: Tensor, *, batch_size: int, num_states: int, num_symbols: int
    ) -> NondeterministicStackState:
        """The stack before the first step: start state 0, and the bottom symbol 0 with the vector v_0.

        Args:
            bottom: v_0, (m,) or (B, m); sets the dtype and the device of the state.
            batch_size: B.
            num_states: Q.
            num_symbols: S.

        Raises:
            ValueError: if a size or the shape or dtype of ``bottom`` is wrong.
        """
        for name, size, least in (
            ("batch_size", batch_size, 0),
            ("num_states", num_states, 1),
            ("num_symbols", num_symbols, 1),
        ):
            if size < least:
                raise ValueError(f"{name}: expected at least {least}, got {size}")
        shared = isinstance(bottom, Tensor) and bottom.dim() == 1
        Sizes().check("bottom", bottom, "m" if shared else f"{batch_size} m")
        like = bottom.new_empty(0, dtype=computation_dtype(bottom.dtype))
        columns = TrackedColumns.initial(bottom.expand(batch_size, -1), num_states, num_symbols)
        return cls(num_states, num_symbols, like, columns)

    def step(
        self, push: Tensor, replace: Tensor, pop: Tensor, value: Tensor
    ) -> tuple[Tensor, NondeterministicStackState]:
        """Take one step; this state stays as it is.

        Args:
            push: log Delta_t[q, x -> r, xy] at index [b, q, x, r, y], (B, Q, S, Q, S).
            replace: log Delta_t[q, x -> r, y], (B, Q, S, Q, S).
            pop: log Delta_t[q, x -> r, eps], (B, Q, S, Q).
            value: v_t, (B, m).

        Returns:
            The reading r_t (B, Q, S, m) of Eq. 29 in the arguments' dtype, and the state after the step.

        Raises:
            ValueError: naming the argument whose shape, dtype or device does not fit the state.
        """
        self._check(push, replace, pop, value)
        with torch.autocast(push.device.type, enabled=False):
            logits = join_transitions(push, replace, pop)
            reading, columns = self._columns_for(logits, value).advance(logits, value)
        reading = reading.unflatten(1, (self.num_states, self.num_symbols)).to(value.dtype)
        return reading, self._with(columns)

    def reorder(self, index: Tensor) -> NondeterministicStackState:
        """The state whose batch row i is this state's row ``index[i]``, for beam search.

        Args:
            index: (B',), a LongTensor; rows may be left out, repeated and permuted.

        Raises:
            ValueError: if ``index`` is not a one-dimensional LongTensor of row numbers on the state's device.
        """
        check_index(index, self.like, self.columns.batch_size)
        columns = self.columns.tracked() if is_transformed() else self.columns
        return self._with(columns.reorder(index))

    def _columns_for(self, *inputs: Tensor) -> TrackedColumns | NativeColumns:
        """The columns in the form in which these inputs can be added."""
        columns = self.columns
        tracking = torch.is_grad_enabled() and (columns.requires_grad or any(x.requires_grad for x in inputs))
        if tracking or is_transformed(*inputs):
            return columns.tracked()
        if columns.steps == 0 and isinstance(columns, TrackedColumns) and self._native_is_available():
            bottom = columns.vectors[:, 0] + columns.marks
            return NativeColumns.initial(bottom, self.num_states, self.num_symbols)
        return columns

    def _native_is_available(self) -> bool:
        return self.like.device.type == "cpu" and library() is not None

    def _with(self, columns: TrackedColumns | NativeColumns) -> NondeterministicStackState:
        return NondeterministicStackState(self.num_states, self.num_symbols, self.like, columns)

    def _check(self, push: Tensor, replace: Tensor, pop: Tensor, value: Tensor) -> None:
        batch_size, value_size = self.columns.batch_size, self.columns.value_size
        source = f"{batch_size} {self.num_states} {self.num_symbols}"
        sizes = Sizes()
        sizes.check("push", push, f"{source} {self.num_states} {self.num_symbols}")
        sizes.check("replace", replace, f"{source} {self.num_states} {self.num_symbols}")
        sizes.check("pop", pop, f"{source} {self.num_states}")
        sizes.check("value", value, f"{batch_size} {value_size}")
        check_fits_state("push", push, self.like)
