"""Compare the speed of two checkouts of this project: ``python scripts/compare.py OTHER``, from the newer one.

Each checkout has a process of its own, with the kernels that were built there. The two run every case in turn, so
that whatever else the machine does hits both. The ratio is the median over turns of this checkout's processor time
divided by the other's; the least times of both stand beside it. Benchmarks that run one after the other differ by more
than commits do.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
SLOWER = 1.05  # a ratio above this is marked
LEAST_MS = 60.0  # a turn runs a case again and again for so long

# B, n, Q, S, m
AUTOMATA = (10, 40, 2, 3, 5), (16, 30, 3, 3, 10), (10, 80, 3, 3, 5), (4, 200, 3, 3, 5), (1, 400, 3, 3, 5)
DECODED = (10, 40, 2, 3, 5), (10, 80, 3, 3, 5), (10, 200, 3, 3, 5)
# B, n, m
VECTORS = (10, 60, 32), (16, 30, 511), (10, 80, 511), (10, 200, 511)

Run = Callable[[], None]
"""Runs a case once, all of it."""


def cases() -> dict[str, Callable[[], Run]]:
    """What is timed, by name: each function prepares a case."""
    made: dict[str, Callable[[], Run]] = {}
    for dtype in ("float32", "float64"):
        for sizes in AUTOMATA:
            made[f"nd {sizes} {dtype}"] = _nondeterministic(sizes, dtype)
        made[f"nd (1, 1000, 2, 3, 5) window 35 {dtype}"] = _nondeterministic((1, 1000, 2, 3, 5), dtype, window=35)
        for shape in VECTORS:
            made[f"sup {shape} {dtype}"] = _by_vectors("superposition_stack", shape, dtype)
        for shape in VECTORS[::2]:
            made[f"strat {shape} {dtype}"] = _by_vectors("stratification_stack", shape, dtype)
        for sizes in DECODED:
            made[f"decoding nd {sizes} {dtype}"] = _decoding(sizes, dtype)
    for stack, size in (("sup-10", 93), ("ns-2-3", 64), ("nd-2-3-5", 64)):
        for at_once in (True, False):
            made[f"LSTM {stack} {'at once' if at_once else 'by steps'}"] = _lstm(stack, size, at_once)
    return made


def _differentiated(compute: Callable[..., Any], inputs: list[Any]) -> Run:
    import torch

    def run() -> None:
        result = compute(*inputs)
        torch.autograd.grad(result, inputs, torch.ones_like(result))

    return run


def _log_weights(sizes: tuple[int, ...], dtype: str) -> list[Any]:
    import torch

    batch, length, states, symbols, size = sizes
    torch.manual_seed(0)
    top = states, symbols
    shapes = [(batch, length, *top, *top)] * 2 + [(batch, length, *top, states), (batch, length, size), (size,)]
    return [torch.randn(shape, dtype=getattr(torch, dtype)) for shape in shapes]


def _nondeterministic(sizes: tuple[int, ...], dtype: str, **options: Any) -> Callable[[], Run]:
    def prepare() -> Run:
        from fairseq_stack.ops import nondeterministic_stack

        inputs = [x.requires_grad_() for x in _log_weights(sizes, dtype)]
        return _differentiated(lambda *arguments: nondeterministic_stack(*arguments, **options), inputs)

    return prepare


def _by_vectors(name: str, sizes: tuple[int, ...], dtype: str) -> Callable[[], Run]:
    def prepare() -> Run:
        import torch

        from fairseq_stack import ops

        torch.manual_seed(0)
        values = torch.rand(sizes, dtype=getattr(torch, dtype))
        projected = torch.randn(*sizes[:2], 3, dtype=values.dtype)
        strengths = [projected.softmax(-1)] if name.startswith("super") else projected.sigmoid().unbind(-1)[:2]
        return _differentiated(getattr(ops, name), [x.requires_grad_() for x in (*strengths, values)])

    return prepare


def _decoding(sizes: tuple[int, ...], dtype: str) -> Callable[[], Run]:
    def prepare() -> Run:
        import torch

        from fairseq_stack.ops import NondeterministicStackState

        push, replace, pop, values, bottom = _log_weights(sizes, dtype)
        order = torch.randint(sizes[0], (sizes[1], sizes[0]))

        def run() -> None:
            with torch.no_grad():
                state = NondeterministicStackState.initial(
                    bottom, batch_size=sizes[0], num_states=sizes[2], num_symbols=sizes[3]
                )
                for t in range(sizes[1]):
                    state = state.reorder(order[t])
                    _, state = state.step(push[:, t], replace[:, t], pop[:, t], values[:, t])

        return run

    return prepare


def _lstm(stack: str, hidden_size: int, at_once: bool) -> Callable[[], Run]:
    def prepare() -> Run:
        import torch

        from fairseq_stack.kinds import parse_stacks
        from fairseq_stack.modules import StackLSTM

        torch.manual_seed(0)
        (layer,) = parse_stacks(stack)
        assert layer.kind.build is not None
        built = layer.kind.build(hidden_size, *layer.sizes, output=False, bias=True)
        model = StackLSTM(3, hidden_size, [built])
        symbols = torch.randint(3, (10, 60))
        return lambda: model(symbols, return_state=not at_once)[0].sum().backward()

    return prepare


def work() -> None:
    """In the process of a checkout: run each case whose name comes in, and print its processor time in ms."""
    import torch

    torch.set_num_threads(1)
    prepared: dict[str, Run] = {}
    for line in sys.stdin:
        name = line.rstrip("\n")
        if name not in prepared:
            prepared = {name: cases()[name]()}
            prepared[name]()
        start, runs, spent = time.process_time(), 0, 0.0
        while spent < LEAST_MS:
            prepared[name]()
            runs, spent = runs + 1, 1e3 * (time.process_time() - start)
        print(spent / runs, flush=True)


class Worker:
    """The process of a checkout."""

    def __init__(self, checkout: Path) -> None:
        environment = os.environ | {"PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--work"], env=environment, cwd=checkout,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, name: str) -> float:
        """A turn of a case; the ms that it takes once."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(name + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{name}: the process in {self._process.args!r} ended")
        return float(answer)

    def end(self) -> None:
        """End the process."""
        self._process.communicate()


def compare(other: Path, names: list[str], rounds: int) -> Iterator[tuple[str, float, float, float]]:
    """For each case: its name, the median ratio of here to ``other``, and the least ms of both."""
    workers = [Worker(HERE), Worker(other)]
    for name in names:
        pairs = []
        for turn in range(rounds):
            order = workers if turn % 2 else workers[::-1]
            times = {worker: worker.run(name) for worker in order}
            pairs.append([times[worker] for worker in workers])
        ratio = statistics.median(here / there for here, there in pairs)
        yield name, ratio, min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)
    for worker in workers:
        worker.end()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0].split(":")[0])
    parser.add_argument("other", type=Path, nargs="?", help="a checkout of another commit, with its kernels built")
    parser.add_argument("--rounds", type=int, default=21, metavar="N", help="runs of each case (default: 21)")
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="only cases whose name contains one of these")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work()
        return 0
    if options.other is None or not (options.other / "fairseq_stack").is_dir():
        parser.error(f"OTHER: expected a checkout of this project, got {options.other}")
    names = [name for name in cases() if not options.only or any(text in name for text in options.only)]
    print(f"{'case':50} {'ratio':>6} {'here ms':>9} {'other ms':>9}")
    slower = 0
    for name, ratio, here, there in compare(options.other.resolve(), names, options.rounds):
        print(f"{name:50} {ratio:6.3f} {here:9.3f} {there:9.3f}{'  slower' * (ratio > SLOWER)}", flush=True)
        slower += ratio > SLOWER
    print(f"{slower} of {len(names)} cases are slower by more than {SLOWER - 1:.0%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
