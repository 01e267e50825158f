"""The machine's peak rate of arithmetic, for comparison."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch

from .timing import Timer, least_times

OPERATIONS = 2
"""Floating-point operations in a multiply-add."""

# Twelve independent chains of multiply-adds, in registers of the widest kind that the
# compiler knows the machine to have: enough to hide the latency, and few enough for 16 registers.
LOOP = """
#if defined(__AVX512F__)
#define BYTES 64
#elif defined(__AVX__)
#define BYTES 32
#else
#define BYTES 16
#endif
typedef REAL vector __attribute__((vector_size(BYTES)));
enum { CHAINS = 12 };
int lanes(void) { return BYTES / sizeof(REAL); }
REAL run(long rounds, REAL factor, REAL summand) {
    vector chain[CHAINS];
    for (int c = 0; c < CHAINS; c++) chain[c] = (vector){0} + (REAL)c;
    for (long round = 0; round < rounds; round++)
#pragma GCC unroll 12
        for (int c = 0; c < CHAINS; c++) chain[c] = chain[c] * factor + summand;
    for (int c = 1; c < CHAINS; c++) chain[0] += chain[c];
    return chain[0][0];
}
"""
CHAINS = 12
C_TYPES = {torch.float32: ("float", ctypes.c_float), torch.float64: ("double", ctypes.c_double)}


@dataclass(frozen=True)
class Peak:
    """The most that was measured, in 10^9 floating-point operations a second; on a CPU by one core.

    Attributes:
        device: where.
        matrix_product: by torch's product of two large matrices.
        multiply_add: by a compiled loop of only multiply-adds in registers; None without a C compiler, and on
            other devices than CPUs.
    """

    device: str
    matrix_product: float
    multiply_add: float | None

    def gflops_of(self, threads: int) -> float:
        """What shares are given of: the loop where there is one, since a matrix product may be far from the peak."""
        return (threads if self.device == "cpu" else 1) * (self.multiply_add or self.matrix_product)

    def __str__(self) -> str:
        product = f"a product of large matrices {self.matrix_product:.0f} GFLOP/s"
        if self.multiply_add is not None:
            return f"multiply-adds in registers {self.multiply_add:.0f} GFLOP/s; {product}"
        return f"{product}{' (no C compiler to measure more with)' if self.device == 'cpu' else ''}"


def measure_peak(timer: Timer, dtype: torch.dtype, repeats: int, size: int) -> Peak:
    """Measure the peak of a device with matrices of this ``size``."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        loop = _multiply_adds(timer, dtype, repeats) if timer.device.type == "cpu" else None
        return Peak(timer.device.type, _matrix_product(timer, dtype, repeats, size), loop)
    finally:
        torch.set_num_threads(threads)


def _matrix_product(timer: Timer, dtype: torch.dtype, repeats: int, size: int) -> float:
    left, right = torch.randn(2, size, size, device=timer.device, dtype=dtype)
    product = torch.empty_like(left)

    def run() -> tuple[float]:
        lap = timer.start()
        torch.mm(left, right, out=product)
        return (lap(),)

    run()
    return OPERATIONS * size**3 / least_times({None: run}, repeats, 5)[None][0] / 1e9


def _multiply_adds(timer: Timer, dtype: torch.dtype, repeats: int) -> float | None:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "loop.c"), Path(folder, "loop.so")
        source.write_text(LOOP)
        options = ["-O3", "-march=native", "-ffp-contract=fast", "-shared", "-fPIC", f"-DREAL={C_TYPES[dtype][0]}"]
        done = subprocess.run([compiler, *options, str(source), "-o", str(library)], capture_output=True)
        return None if done.returncode else _time_loop(timer, ctypes.CDLL(str(library)), dtype, repeats)


def _time_loop(timer: Timer, loop: ctypes.CDLL, dtype: torch.dtype, repeats: int) -> float:
    real = C_TYPES[dtype][1]
    loop.run.argtypes, loop.run.restype = [ctypes.c_long, real, real], real
    rounds = 1_000_000

    def run() -> tuple[float]:
        lap = timer.start()
        loop.run(rounds, 0.999, 1e-9)
        return (lap(),)

    seconds = least_times({None: run}, repeats, 5)[None][0]
    return OPERATIONS * rounds * CHAINS * loop.lanes() / seconds / 1e9
