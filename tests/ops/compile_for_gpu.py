"""Compiles all Triton kernels for a GPU that need not be here, of compute capability 9.0, and prints their names.

What is launched is only compiled.
"""

from __future__ import annotations

from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver, jit

from fairseq_stack.ops._triton.nondeterministic import launch as nondeterministic
from fairseq_stack.ops._triton.nondeterministic.sizes import Sizes
from fairseq_stack.ops._triton.superposition import launch as superposition


class _Absent:
    """A driver of a GPU that is not here."""

    def __init__(self, capability: int) -> None:
        self.target = GPUTarget("cuda", capability, 32)

    def get_current_target(self) -> GPUTarget:
        return self.target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


def _compile_instead(run: Any) -> Any:
    def compiled(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        stack, _, name = f"{self.fn.__module__}.{self.fn.__name__}".rsplit(".", 3)[1:]
        print(stack, name, sep=".")
        return run(self, *args, grid=grid, warmup=True, **options)

    return compiled


def main() -> None:
    jit.JITFunction.run = _compile_instead(jit.JITFunction.run)
    driver.set_active(_Absent(90))
    for num_states, num_symbols, tile, window in ((1, 1, 8, None), (3, 3, 16, None), (2, 3, 8, 20)):
        sizes = Sizes(1, 4 * tile, num_states, num_symbols, tile, window)
        transitions = torch.ones(1, sizes.length, sizes.top, 2 * sizes.top + num_states, dtype=torch.float64)
        inner = nondeterministic.inner_weights(transitions, sizes)
        nondeterministic.log_weight_gradients(inner, inner.weights, sizes)
    for dtype in (torch.float32, torch.float64):
        actions = torch.ones(1, 9, 3, dtype=dtype)
        superposition.action_gradients(actions, superposition.weights(actions, 9), 9)


if __name__ == "__main__":
    main()
