"""The log weights of the best parts of runs by the compiled kernels: ``_native/src/nondeterministic_best_parts.h``."""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from .._native import buffers, required_library
from .._native.structures import fields_of
from ._native_step import BYTES


class Call(ctypes.Structure):
    """struct nd_best_call."""

    _fields_ = fields_of("nd_best_call")


def weights_of_parts_native(start: Tensor, push: Tensor, replace: Tensor, pop: Tensor) -> tuple[Tensor, ...]:
    """Removals, excursions and forward weights, (B, ...) each, for contiguous log weights (B, n, ...) in float64."""
    batch_size, length, num_states, num_symbols = push.shape[:4]
    library = required_library()
    lanes = library.vector_bytes // BYTES
    row = -(-(length + 1) // lanes) * lanes
    shape = length + 1, num_states, num_symbols, num_states, row
    removals, excursions = _empty(batch_size, *shape), _empty(batch_size, *shape)
    forward = _empty(batch_size, num_states, num_symbols, row)
    call = Call(batch_size, length, num_states, num_symbols, row)
    tensors = {"push": push, "replace": replace, "pop": pop, "start": start}
    tensors |= {"removals": removals, "excursions": excursions, "forward": forward}
    for name, tensor in tensors.items():
        setattr(call, name, tensor.data_ptr())
    work = batch_size * num_states**3 * num_symbols * (length + 1) ** 3 // 6
    library.run("fss_nd_best_parts", call, parts=batch_size, work=work, scratch_bytes=0)
    return tuple(x[..., : length + 1] for x in (removals, excursions, forward))


def _empty(*shape: int) -> Tensor:
    size = BYTES * int(torch.Size(shape).numel())
    return buffers.take(size).view(torch.float64).view(shape)
