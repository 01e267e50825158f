"""Dropout with random numbers from the compiled kernels, on CPUs: ``_native/src/dropout.h`` has the generator.

PyTorch draws one number at a time on CPUs, which takes longer than all the arithmetic of a small transformer.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ._native import library, required_library
from ._native.structures import new_call
from ._transforms import is_transformed

BLOCK = 16_384  # DROPOUT_BLOCK of the C sources: factors that are computed by one thread


def dropout(x: Tensor, p: float, training: bool = True, inplace: bool = False) -> Tensor:
    """As :func:`torch.nn.functional.dropout`, with the same distribution and different random numbers.

    On a CPU, in float32 and float64, one number of PyTorch's generator is the seed of the mask. Elsewhere, without the
    compiled kernels, and while PyTorch compiles, scripts, traces or transforms, this is PyTorch's dropout.

    Args:
        x: of any shape.
        p: the probability of an element to become 0; the others are multiplied by 1 / (1 - p).
        training: without it, x is returned.
        inplace: whether x is overwritten.

    Raises:
        ValueError: p is not a probability.
    """
    if not (training and 0 < p < 1 and draws_factors(x)):
        return functional.dropout(x, p, training, inplace)
    factors = _factors(x, p)
    return x.mul_(factors) if inplace else x * factors


def draws_factors(x: Tensor) -> bool:
    """Whether the compiled kernels draw the random numbers for ``x``."""
    return (
        x.device.type == "cpu"
        and x.dtype in (torch.float32, torch.float64)
        and not torch.compiler.is_compiling()
        and not torch.jit.is_tracing()
        and not is_transformed(x)
        and library() is not None
    )


def _factors(x: Tensor, p: float) -> Tensor:
    """What dropout multiplies each element of ``x`` by: 0 or 1 / (1 - p)."""
    factors = torch.empty_like(x, memory_format=torch.contiguous_format, requires_grad=False)
    seed = int(torch.empty((), dtype=torch.int64, device="cpu").random_())
    is_double, count = int(x.dtype == torch.float64), x.numel()
    limit = min(round(p * 2**32), 2**32 - 1)
    call = new_call("dropout_call", is_double, count, seed, limit, probability=p, factors=factors.data_ptr())
    required_library().run("fss_dropout_factors", call, parts=-(-count // BLOCK), work=count, scratch_bytes=0)
    return factors
