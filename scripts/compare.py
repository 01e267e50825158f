"""Compare the speed of two checkouts of this project: ``python scripts/compare.py OTHER``, from the newer one.

Each checkout has a process of its own, with the kernels that were built there. The two run every case in turn, so
that whatever else the machine does hits both. The ratio is the median over turns of this checkout's processor time
divided by the other's; the least times of both stand beside it. Benchmarks that run one after the other differ by more
than commits do. With ``--memory``, each case runs once in a fork of its own, and the peaks of memory are compared.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
WORSE = 1.05  # a ratio above this is marked
LEAST_MS = 60.0  # a turn runs a case again and again for so long
LEAST_MB = 2.0  # less is noise

# B, n, Q, S, m
AUTOMATA = (10, 40, 2, 3, 5), (16, 30, 3, 3, 10), (10, 80, 3, 3, 5), (4, 200, 3, 3, 5), (1, 400, 3, 3, 5)
DECODED = (10, 40, 2, 3, 5), (10, 80, 3, 3, 5), (10, 200, 3, 3, 5)
# B, n, m
VECTORS = (10, 60, 32), (16, 30, 511), (10, 80, 511), (10, 200, 511)

Run = Callable[[], object]
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
        for std in (40.0, 300.0):
            made[f"extreme nd (2, 40, 2, 3, 5) std {std:.0f} {dtype}"] = _nondeterministic((2, 40, 2, 3, 5), dtype, std)
        extreme = _nondeterministic((2, 40, 2, 3, 5), dtype, 300.0, window=10)
        made[f"extreme nd (2, 40, 2, 3, 5) window 10 {dtype}"] = extreme
    for stack, size in (("sup-10", 93), ("ns-2-3", 64), ("nd-2-3-5", 64)):
        for at_once in (True, False):
            made[f"LSTM {stack} {'at once' if at_once else 'by steps'}"] = _lstm(stack, size, at_once)
    for controller, memory in (("linear", "stack"), ("lstm", "stack"), ("gru", "queue")):
        for at_once in (True, False):
            name = f"neural {memory} {controller} {'at once' if at_once else 'by steps'}"
            made[name] = _neural("NeuralStack", controller, memory, at_once)
    made["neural stack lstm with buffers"] = _neural("BufferedNeuralStack", "lstm", "stack", True)
    for std in (1.0, 30.0, 100.0):
        made[f"pytorch nd (4, 40, 2, 3, 5) std {std:.0f}"] = _nondeterministic(
            (4, 40, 2, 3, 5), "float64", std, backend="pytorch"
        )
    made["pytorch nd (10, 80, 3, 3, 5)"] = _nondeterministic((10, 80, 3, 3, 5), "float64", backend="pytorch")
    made["pytorch nd (10, 80, 3, 3, 5) by steps"] = _nondeterministic(
        (10, 80, 3, 3, 5), "float64", backend="pytorch", window=80
    )
    made["pytorch sup (10, 80, 511)"] = _by_vectors("superposition_stack", (10, 80, 511), "float64", backend="pytorch")
    made["posterior nd (1, 80, 3, 3, 5)"] = _posterior((1, 80, 3, 3, 5))
    made["best runs nd (1, 40, 3, 3, 5)"] = _best_runs((1, 40, 3, 3, 5))
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


def _nondeterministic(sizes: tuple[int, ...], dtype: str, std: float = 1.0, **options: Any) -> Callable[[], Run]:
    def prepare() -> Run:
        from fairseq_stack.ops import nondeterministic_stack

        weights, vectors = (some := _log_weights(sizes, dtype))[:3], some[3:]
        inputs = [x.requires_grad_() for x in (*(std * x for x in weights), *vectors)]
        return _differentiated(lambda *arguments: nondeterministic_stack(*arguments, **options), inputs)

    return prepare


def _posterior(sizes: tuple[int, ...]) -> Callable[[], Run]:
    def prepare() -> Run:
        from fairseq_stack.ops import transition_posterior

        weights = _log_weights(sizes, "float64")[:3]
        return lambda: transition_posterior(*weights)

    return prepare


def _best_runs(sizes: tuple[int, ...]) -> Callable[[], Run]:
    def prepare() -> Run:
        from fairseq_stack.ops import best_runs

        weights = _log_weights(sizes, "float64")[:3]
        return lambda: best_runs(*weights, count=3)

    return prepare


def _by_vectors(name: str, sizes: tuple[int, ...], dtype: str, **options: Any) -> Callable[[], Run]:
    def prepare() -> Run:
        import torch

        from fairseq_stack import ops

        torch.manual_seed(0)
        values = torch.rand(sizes, dtype=getattr(torch, dtype))
        projected = torch.randn(*sizes[:2], 3, dtype=values.dtype)
        strengths = [projected.softmax(-1)] if name.startswith("super") else projected.sigmoid().unbind(-1)[:2]
        inputs = [x.requires_grad_() for x in (*strengths, values)]
        return _differentiated(lambda *arguments: getattr(ops, name)(*arguments, **options), inputs)

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


def _neural(kind: str, controller: str, memory: str, at_once: bool) -> Callable[[], Run]:
    """Reversal as in Hao et al. (2018)."""

    def prepare() -> Run:
        import torch

        from fairseq_stack import modules

        torch.manual_seed(0)
        model: Any = getattr(modules, kind)(3, 2, controller=controller, memory=memory)
        strings = torch.eye(3)[torch.randint(3, (10, 24))]

        def run() -> None:
            result = model(strings) if at_once else model.each_step(strings, 24)
            (result if hasattr(result, "output") else result[1]).output.sum().backward()

        return run

    return prepare


def work(memory: bool) -> None:
    """In the process of a checkout: run each case whose name comes in, and print its processor time in ms, or the MB of
    memory that it takes at its peak.
    """
    import torch

    torch.set_num_threads(1)
    prepared: dict[str, Run] = {}
    if memory:
        for case in cases().values():
            case()  # imports what it needs
        _nondeterministic((1, 2, 2, 2, 2), "float32")()()
    for line in sys.stdin:
        name = line.rstrip("\n")
        if memory:
            _print_peak(cases()[name])
            continue
        if name not in prepared:
            prepared = {name: cases()[name]()}
            prepared[name]()
        start, runs, spent = time.process_time(), 0, 0.0
        while spent < LEAST_MS:
            prepared[name]()
            runs, spent = runs + 1, 1e3 * (time.process_time() - start)
        print(spent / runs, flush=True)


def _print_peak(prepare: Callable[[], Run]) -> None:
    """In a fork, so that no case finds memory that another has left."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    run = prepare()
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before = _peak_mb()
    run()
    print(_peak_mb() - before, flush=True)
    os._exit(0)


def _peak_mb() -> float:
    (line,) = (x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith("VmHWM:"))
    return float(line.split()[1]) / 1024


class Worker:
    """The process of a checkout."""

    def __init__(self, checkout: Path, memory: bool) -> None:
        environment = os.environ | {"PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--work", *(["--memory"] if memory else [])], env=environment, cwd=checkout,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, name: str) -> float:
        """A turn of a case; the ms or the MB that it takes once."""
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


def compare(other: Path, names: list[str], rounds: int, memory: bool) -> Iterator[tuple[str, float, float, float]]:
    """For each case: its name, the median ratio of here to ``other``, and the least ms, or MB, of both."""
    workers = [Worker(HERE, memory), Worker(other, memory)]
    for name in names:
        pairs = []
        for turn in range(rounds):
            order = workers if turn % 2 else workers[::-1]
            times = {worker: worker.run(name) for worker in order}
            pairs.append([times[worker] for worker in workers])
        least = LEAST_MB if memory else 0
        ratio = statistics.median(max(here, least) / max(there, least) for here, there in pairs)
        yield name, ratio, min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)
    for worker in workers:
        worker.end()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0].split(":")[0])
    parser.add_argument("other", type=Path, nargs="?", help="a checkout of another commit, with its kernels built")
    parser.add_argument("--rounds", type=int, default=21, metavar="N", help="runs of each case (default: 21)")
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="only cases whose name contains one of these")
    parser.add_argument("--memory", action="store_true", help="compare peak memory instead of time (Linux)")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.memory)
        return 0
    if options.other is None or not (options.other / "fairseq_stack").is_dir():
        parser.error(f"OTHER: expected a checkout of this project, got {options.other}")
    names = [name for name in cases() if not options.only or any(text in name for text in options.only)]
    unit, word = ("MB", "larger") if options.memory else ("ms", "slower")
    rounds = 1 if options.memory else options.rounds
    print(f"{'case':50} {'ratio':>6} {f'here {unit}':>9} {f'other {unit}':>9}")
    worse = 0
    for name, ratio, here, there in compare(options.other.resolve(), names, rounds, options.memory):
        print(f"{name:50} {ratio:6.3f} {here:9.3f} {there:9.3f}{f'  {word}' * (ratio > WORSE)}", flush=True)
        worse += ratio > WORSE
    print(f"{worse} of {len(names)} cases are {word} by more than {WORSE - 1:.0%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
