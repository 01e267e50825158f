"""Calls of the compiled kernels in which every array lies between margins of NaN.

A kernel that reads beyond an array gets NaN, and one that writes there changes the margin: the NaN is a signalling one,
which arithmetic turns into another.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fairseq_stack.ops._native import Library, _Resources

MARGIN = 512  # elements, on either side
ALIGNMENT = 64
NAN = np.uint64(0x7FF00001_7F800001)  # NaN as one double, and as two floats


class Array(NamedTuple):
    """An array that a call names: ``elements`` of ``item`` bytes each.

    Attributes:
        name: the field of the call's struct.
        written: whether the kernel writes all of it. Then it holds NaN before; else a copy of what the call names.
        numbers: whether it is of the call's real type, so that NaN can be seen in it.
        added_to: whether the kernel adds to what the call names.
    """

    name: str
    item: int
    elements: int
    written: bool = False
    numbers: bool = True
    added_to: bool = False


class Guard:
    """Room for an array between two margins; all of it is NaN at first.

    Kernels may take their arrays from anywhere in memory, except for those that hold vectors (``aligned``).
    """

    def __init__(self, name: str, item: int, count: int, *, aligned: bool) -> None:
        self.name = name
        margin = MARGIN * item
        self._memory = np.full((2 * margin + item * count + 3 * ALIGNMENT) // 8, NAN).view(np.uint8)
        self._begin = margin + -(self._memory.ctypes.data + margin) % ALIGNMENT
        if not aligned:
            self._begin += item
        self._end = self._begin + item * count
        self._untouched = self._memory.copy()

    @property
    def address(self) -> int:
        return self._memory.ctypes.data + self._begin

    @property
    def content(self) -> np.ndarray:
        """The bytes of the array."""
        return self._memory[self._begin : self._end]

    def check_margins(self) -> None:
        """Assert that both margins are as they were."""
        for side, part in (("before", slice(0, self._begin)), ("behind", slice(self._end, None))):
            changed = self._memory[part] != self._untouched[part]
            assert not changed.any(), f"{self.name}: {changed.sum()} bytes {side} the array were written"

    def check_numbers(self, is_double: bool) -> None:
        """Assert that there is no NaN in the array."""
        missing = np.isnan(self.content.view(np.float64 if is_double else np.float32))
        assert not missing.any(), f"{self.name}: {missing.sum()} of {missing.size} numbers are NaN"


def run_between_margins(
    library: Library,
    function: str,
    call: Any,
    *,
    parts: int,
    work: int,
    scratch_bytes: int,
    crew: int = 1,
    mistake: Callable[[Any], None] | None = None,
) -> None:
    """``Library.run`` with one thread or a crew and a copy of each array between margins, which are checked.

    Args:
        library: as for ``Library.run``, and the arguments up to ``scratch_bytes``, too.
        mistake: what is done to the call before the kernel gets it, in tests of the tests.

    Raises:
        AssertionError: if the kernel wrote beyond an array, or left NaN in what it had to write.
    """
    guards = {array: _guarded(call, array) for array in _arrays(function, call, library)}
    scratch = Guard("scratch", 8, scratch_bytes // 8, aligned=True)
    resources = _Resources(library.number, crew, crew, int(crew > 1), scratch.address, scratch_bytes)
    originals = {array: getattr(call, array.name) for array in guards}
    for array, guard in guards.items():
        setattr(call, array.name, guard.address)
    columns = _guarded_columns(call, library, function.endswith("backward")) if "nd_step" in function else []
    if mistake:
        mistake(call)
    library.functions[function](ctypes.byref(call), ctypes.byref(resources))
    for guard in (*guards.values(), *(column.guard for column in columns), scratch):
        guard.check_margins()
    for array, guard in guards.items():
        if array.written and array.numbers:
            guard.check_numbers(bool(getattr(call, "is_double", True)))
        if array.written or array.added_to:
            ctypes.memmove(originals[array], guard.address, array.item * array.elements)
    for column in columns:
        if column.written:
            ctypes.memmove(column.original, column.guard.address, column.guard.content.size)


def _guarded(call: Any, array: Array) -> Guard:
    guard = Guard(array.name, array.item, array.elements, aligned=not array.numbers)
    if not array.written and array.elements:
        ctypes.memmove(guard.address, getattr(call, array.name), array.item * array.elements)
    return guard


class Column(NamedTuple):
    """One of the arrays of a list of pointers to columns: its copy between margins, and where it comes from."""

    guard: Guard
    original: int
    written: bool


def _guarded_columns(call: Any, library: Library, backward: bool) -> list[Column]:
    """The columns of the steps kept..t, as far as the beams of this step descend from them, and their derivatives."""
    count = call.step - call.kept
    ancestors = np.ctypeslib.as_array(ctypes.cast(call.ancestors, ctypes.POINTER(ctypes.c_int32)), (call.beams, count))
    given, derivatives = _pointers(call.columns), _pointers(call.adjoints)
    columns, adjoints = [], []
    for k in range(count + 1):
        own = k == count
        sizes = _step_sizes(call, library, call.kept + k)
        beams = call.beams if own else int(ancestors[:, k].max()) + 1
        columns.append(_guarded_column(f"column {k}", given[k], beams * sizes[0], own and not backward))
        if backward and derivatives[k]:
            adjoints.append((k, _guarded_column(f"adjoint {k}", derivatives[k], call.beams * sizes[1], True)))
    for k, column in enumerate(columns):
        given[k] = column.guard.address
    for k, adjoint in adjoints:
        derivatives[k] = adjoint.guard.address
    return [*columns, *(adjoint for _, adjoint in adjoints)]


def _pointers(address: int | None) -> Any:
    return ctypes.cast(address or 0, ctypes.POINTER(ctypes.c_void_p))


def _guarded_column(name: str, address: int, size: int, written: bool) -> Column:
    guard = Guard(name, 8, size // 8, aligned=True)
    ctypes.memmove(guard.address, address, size)
    return Column(guard, address, written)


def _step_sizes(call: Any, library: Library, step: int) -> Any:
    """Bytes of the column of a step and of its derivatives, for one beam."""
    sizes = (ctypes.c_size_t * 4)()
    other = type(call).from_buffer_copy(call)
    other.step, other.kept = step, min(call.kept, step)
    library.functions.fss_nd_step_sizes(ctypes.byref(other), library.number, sizes)
    return sizes


def _arrays(function: str, call: Any, library: Library) -> list[Array]:
    if function.startswith("fss_sup_step"):
        return _arrays_of_superposition_step(call, function.endswith("backward"))
    if function.startswith("fss_strat_step"):
        return _arrays_of_stratification_step(call, function.endswith("backward"))
    if "step" in function:
        return _arrays_of_step(call, function.endswith("backward"))
    if "window" in function:
        return _arrays_of_window(call, function.endswith("backward"))
    arrays = _arrays_of_superposition if function.startswith("fss_sup") else _arrays_of_nondeterministic
    return arrays(call, function.endswith("backward"))


def _arrays_of_superposition(call: Any, backward: bool) -> list[Array]:
    item, steps = 8 if call.is_double else 4, call.sequences * call.length
    inputs = [Array("actions", item, steps * 3), Array("values", item, steps * call.size)]
    if not backward:
        return [*inputs, Array("readings", item, steps * call.size, written=True)]
    return [
        *inputs,
        Array("cotangents", item, steps * call.size),
        Array("action_gradients", item, steps * 3, written=True),
        Array("value_gradients", item, steps * call.size, written=True),
    ]


def _arrays_of_superposition_step(call: Any, backward: bool) -> list[Array]:
    item, values = 8 if call.is_double else 4, call.sequences * call.size
    before, after = values * call.height, values * call.next_height
    inputs = [
        Array("actions", item, call.sequences * 3),
        Array("values", item, values),
        Array("elements", item, before),
    ]
    if not backward:
        undefined = Array("undefined", 1, call.sequences, written=True, numbers=False)
        return [*inputs, undefined, Array("next", item, after, written=True)]
    return [
        *inputs,
        Array("next_gradients", item, after),
        Array("action_gradients", item, call.sequences * 3, written=True),
        Array("value_gradients", item, values, written=True),
        Array("element_gradients", item, before, written=True),
    ]


def _arrays_of_stratification_step(call: Any, backward: bool) -> list[Array]:
    """All but the items, each of which has a pointer of its own."""
    item, before = 8 if call.is_double else 4, call.sequences * call.height
    values, after = call.sequences * call.size, before + call.sequences
    inputs = [Array("pops", item, call.sequences), Array("strengths", item, before)]
    if not backward:
        inputs.append(Array("pushes", item, call.sequences))
        undefined = Array("undefined", 1, call.sequences, written=True, numbers=False)
        outputs = [Array("next", item, after, written=True), Array("readings", item, values, written=True)]
        return [*inputs, undefined, *outputs]
    given = [("next_gradients", after), ("reading_gradients", values)]
    return [
        *inputs,
        Array("next", item, after),
        *(Array(name, item, count) for name, count in given if getattr(call, name)),
        Array("derivatives", item, call.followed * values, added_to=True),
        Array("strength_gradients", item, before, written=True),
        Array("pop_gradients", item, call.sequences, written=True),
        Array("push_gradients", item, call.sequences, written=True),
    ]


def _arrays_of_nondeterministic(call: Any, backward: bool) -> list[Array]:
    item, steps, size = 8 if call.is_double else 4, call.sequences * call.length, call.num_states * call.num_symbols
    suffix = "_gradients" if backward else ""
    weights = steps * size * (call.length + 1)
    arrays = [
        Array("push" + suffix, item, steps * size**2, written=backward),
        Array("replace" + suffix, item, steps * size**2, written=backward),
        Array("pop" + suffix, item, steps * size * call.num_states, written=backward),
        Array("weights", item, weights, written=not backward),
        Array("workspace", 8, call.sequences * call.workspace_bytes // 8, written=not backward, numbers=False),
        Array("wide", 1, call.sequences, written=not backward, numbers=False),
    ]
    arrays.append(Array("inexact", 1, call.sequences, added_to=True, numbers=False))
    return [*arrays, *([Array("cotangents", item, weights)] if backward else [])]


def _arrays_of_step(call: Any, backward: bool) -> list[Array]:
    size = call.num_states * call.num_symbols
    logits = call.beams * size * (2 * size + call.num_states if call.step else 1)
    readings, values = call.beams * size * call.value_size, call.beams * call.value_size
    ancestors = Array("ancestors", 4, call.beams * (call.step - call.kept), numbers=False)
    if backward:
        arrays = [Array("logit_gradients", 8, logits, written=True), Array("value_gradients", 8, values, written=True)]
        return [ancestors, *arrays, *([Array("cotangents", 8, readings)] if call.cotangents else [])]
    arrays = [ancestors, Array("values", 8, values), *([Array("logits", 8, logits)] if call.logits else [])]
    arrays.append(Array("inexact", 1, call.beams, written=True, numbers=False))
    return [*arrays, *([Array("readings", 8, readings, written=True)] if call.step else [])]


def _arrays_of_window(call: Any, backward: bool) -> list[Array]:
    item, size = 8 if call.is_double else 4, call.num_states * call.num_symbols
    steps, vectors = call.sequences * call.length, call.sequences * (call.length + 1) * call.value_size
    logits, readings = steps * size * (2 * size + call.num_states), steps * size * call.value_size
    kept = [
        Array("workspace", 8, call.sequences * call.workspace_bytes // 8, written=not backward, numbers=False),
        Array("wide", 1, call.sequences, written=not backward, numbers=False),
        Array("inexact", 1, call.sequences, added_to=True, numbers=False),
    ]
    if backward:
        gradients = Array("logit_gradients", item, logits, written=True)
        of_values = Array("value_gradients", item, vectors, written=True)
        return [*kept, Array("cotangents", item, readings), gradients, of_values]
    inputs = [Array("logits", item, logits), Array("values", item, vectors)]
    return [*kept, *inputs, Array("readings", item, readings, written=True)]
