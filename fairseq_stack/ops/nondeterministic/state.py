"""The nondeterministic stack one step at a time, as decoders and stack RNNs need it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .._arguments import Sizes, check_sizes, computation_dtype, without_autocast
from .._native import library
from .._states import check_fits_state, check_index
from .._transforms import is_transformed
from ._log_weights import join_transitions, largest_of
from ._native_columns import NativeColumns
from ._panel_columns import PanelColumns
from ._tracked_columns import TrackedColumns

Columns = NativeColumns | PanelColumns | TrackedColumns


@dataclass(frozen=True, eq=False)
class NondeterministicStackState:
    """The stack after t steps, for a batch of B sequences; immutable.

    A step takes O(Q^3 S^2 t^2) time and a state O(Q^2 S^2 t^2) space for each sequence; with a window of D steps,
    O(Q^3 S^2 D^2) and O(Q^2 S^2 D^2). A step copies nothing of the steps before. Autograd differentiates through the
    steps once, and takes the memory of the states alone. On the CPU they run on the compiled kernels, and reordering
    moves t integers for each sequence.

    ``torch.func`` transforms the steps in any way and any number of times. Then they run in plain PyTorch, and each
    copies the state.

    Make the first state with ``initial``.

    Attributes:
        num_states: Q.
        num_symbols: S.
        like: an empty tensor with the device of the inputs, and with their dtype or a wider one.
        columns: the columns of all steps so far, computed in float64.
        log_scale: by how much ``columns.log_alpha`` is less than log alpha[t], (B,); None if it is not wanted.
    """

    num_states: int
    num_symbols: int
    like: Tensor
    columns: Columns
    log_scale: Tensor | None = None

    @classmethod
    def initial(
        cls,
        bottom: Tensor,
        *,
        batch_size: int,
        num_states: int,
        num_symbols: int,
        window: int | None = None,
        start: Tensor | None = None,
        weighs: bool = False,
    ) -> NondeterministicStackState:
        """The stack before the first step: start state 0, and the bottom symbol 0 with the vector v_0.

        Args:
            bottom: v_0, (m,) or (B, m); sets the dtype and the device of the state.
            batch_size: B.
            num_states: Q.
            num_symbols: S.
            window: D: after t steps, the stack remembers only what was pushed in step t - D + 1 or later, where v_0
                counts as pushed in step 0 (gamma[i -> t] = 0 for t - i > D; DuSell and Chiang, 2022). None for
                unlimited memory.
            start: log weights of the configurations (q, x) that runs start in, (B, Q, S), in place of state 0 and
                symbol 0; x lies on the stack with v_0.
            weighs: whether the states have ``log_weights``.

        Raises:
            ValueError: if a size or the shape, dtype or device of a tensor is wrong.
        """
        check_sizes(num_states=num_states, num_symbols=num_symbols, window=window)
        shared = isinstance(bottom, Tensor) and bottom.dim() == 1
        sizes = Sizes()
        sizes.check("bottom", bottom, "m" if shared else f"{batch_size} m")
        if start is not None:
            sizes.check("start", start, f"{batch_size} {num_states} {num_symbols}")
            start = start.flatten(1)
        like = bottom.new_empty(0, dtype=computation_dtype(bottom.dtype))
        transformed = torch.compiler.is_compiling() or is_transformed(*(x for x in (bottom, start) if x is not None))
        arguments = bottom.expand(batch_size, -1), num_states, num_symbols, window, start
        decoding_on_gpu = like.is_cuda and not torch.is_grad_enabled()  # fewer launches than panels have
        columns: Columns
        if transformed or decoding_on_gpu:
            columns = TrackedColumns.initial(*arguments)
        else:
            has_kernels = like.device.type == "cpu" and library() is not None
            columns = (NativeColumns if has_kernels else PanelColumns).initial(*arguments, weighs=weighs)
        log_scale = None
        if weighs:
            log_scale = bottom.new_zeros(batch_size, dtype=torch.float64)
            if start is not None:
                log_scale = log_scale + largest_of(start[:, None].double())
        return cls(num_states, num_symbols, like, columns, log_scale)

    @property
    def log_weights(self) -> Tensor:
        """``log alpha[t][r, y]`` (Eq. 27), (B, Q, S): weights of the runs of t steps that end in state r with y on top.

        They are -inf, with gradient 0, where there is no such run, and NaN from the first step on that has a log weight
        that is NaN or inf. They are exact where readings are. The dtype is float64 for inputs in float64, and otherwise
        float32.

        Raises:
            ValueError: if the first state was made without ``weighs``.
        """
        if self.log_scale is None or self.columns.log_alpha is None:
            raise ValueError("log_weights: expected a state that was made with weighs=True")
        log_weights = self.columns.log_alpha + self.log_scale[:, None]
        return log_weights.unflatten(1, (self.num_states, self.num_symbols)).to(self.like.dtype)

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
        source = f"{self.columns.batch_size} {self.num_states} {self.num_symbols}"
        sizes = Sizes()
        sizes.check("push", push, f"{source} {self.num_states} {self.num_symbols}")
        sizes.check("replace", replace, f"{source} {self.num_states} {self.num_symbols}")
        sizes.check("pop", pop, f"{source} {self.num_states}")
        sizes.check("value", value, f"{self.columns.batch_size} {self.columns.value_size}")
        check_fits_state("push", push, self.like)
        with without_autocast(value.device):
            return self._step(join_transitions(push, replace, pop).double(), value)

    def step_joined(self, transitions: Tensor, value: Tensor) -> tuple[Tensor, NondeterministicStackState]:
        """Take one step, as ``step`` does, with all log weights in one tensor; this saves much of a short step's time.

        Args:
            transitions: (B, Q S (2 Q S + Q)): for each (q, x), row-major, first the Q S pushes (r, y), then as many
                replaces (r, y), then the Q pops r.
            value: v_t, (B, m).

        Returns:
            As ``step``.

        Raises:
            ValueError: naming the argument whose shape, dtype or device does not fit the state.
        """
        size = self.num_states * self.num_symbols
        width = 2 * size + self.num_states
        sizes = Sizes()
        sizes.check("transitions", transitions, f"{self.columns.batch_size} {size * width}")
        sizes.check("value", value, f"{self.columns.batch_size} {self.columns.value_size}")
        check_fits_state("transitions", transitions, self.like)
        with without_autocast(value.device):
            return self._step(transitions.unflatten(1, (size, width)), value)

    def reorder(self, index: Tensor) -> NondeterministicStackState:
        """The state whose batch row i is this state's row ``index[i]``, for beam search.

        Args:
            index: (B',), a LongTensor; rows may be left out, repeated and permuted.

        Raises:
            ValueError: if ``index`` is not a one-dimensional LongTensor of row numbers on the state's device.
        """
        check_index(index, self.like, self.columns.batch_size)
        columns = self.columns.tracked() if is_transformed() else self.columns
        return self._with(columns.reorder(index), None if self.log_scale is None else self.log_scale[index])

    def detach(self) -> NondeterministicStackState:
        """The same stack, through which no gradients flow to the steps before, for truncated back-propagation."""
        return self._with(self.columns.detach(), self.log_scale)

    def _step(self, logits: Tensor, value: Tensor) -> tuple[Tensor, NondeterministicStackState]:
        """A step with log weights (B, C, 2 C + Q)."""
        transformed = torch.compiler.is_compiling() or is_transformed(logits, value)
        columns = self.columns.tracked() if transformed else self.columns
        reading, columns = columns.advance(logits, value)
        log_scale = None if self.log_scale is None else self.log_scale + largest_of(logits.double())
        return reading.unflatten(1, (self.num_states, self.num_symbols)), self._with(columns, log_scale)

    def _with(self, columns: Columns, log_scale: Tensor | None) -> NondeterministicStackState:
        return NondeterministicStackState(self.num_states, self.num_symbols, self.like, columns, log_scale)
