"""What ``scripts/compare.py`` measures in the process of a checkout, which may be another one than that of this file.

It calls the stacks as users do. Run with ``python -m``, it reads the names of cases and prints a measurement or an
error for each, as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from fairseq_stack import ops

from .cases import Case, Variant, measurable
from .decoding import Beam
from .memory import growth
from .networks import Network
from .networks import runs as runs_of_network
from .recurrent import Recurrent
from .recurrent import runs as runs_of_lstm
from .timing import Timer, passes, passes_of

LEAST_MS = 60.0  # a turn runs a case again and again for so long
PYTORCH = "pytorch "  # begins the names of cases that run without the compiled kernels
CPU = torch.device("cpu")
TIMER = Timer(CPU, time.process_time)

# B, n, Q, S, m
AUTOMATA = (10, 40, 2, 3, 5), (16, 30, 3, 3, 10), (10, 80, 3, 3, 5), (4, 200, 3, 3, 5), (1, 400, 3, 3, 5)
DECODED = (10, 40, 2, 3, 5), (10, 80, 3, 3, 5), (10, 200, 3, 3, 5)
LONG, MIDDLE, SMALL = (1, 1000, 2, 3, 5), (10, 40, 2, 3, 5), (4, 16, 2, 3, 5)
# B, n, m
VECTORS = (10, 60, 32), (16, 30, 511), (10, 80, 511), (10, 200, 511)
WEIGHTS = {"std 300": (300.0, False), "masked": (1.0, True), "masked std 300": (300.0, True)}
"""The standard deviation of log weights, and whether half of them are -inf."""

Run = Callable[[], object]
"""Runs a case once, all of it."""


def cases() -> dict[str, Callable[[], Run]]:
    """What is measured, by name: each function prepares a case."""
    made: dict[str, Callable[[], Run]] = {}
    for dtype in ("float32", "float64"):
        for sizes in AUTOMATA:
            made[f"nd {sizes} {dtype}"] = partial(_automaton, "passes", sizes, dtype)
        made[f"nd {LONG} window 35 {dtype}"] = partial(_automaton, "passes", LONG, dtype, window=35)
        for sizes in DECODED:
            made[f"decoding nd {sizes} {dtype}"] = partial(_automaton, "decoding", sizes, dtype)
        for name in ("steps", "log Z", "posterior", "best runs"):
            made[f"{name} nd {MIDDLE} {dtype}"] = partial(_automaton, name, MIDDLE, dtype)
        for weights, (std, masked) in WEIGHTS.items():
            extreme = partial(_automaton, sizes=SMALL, dtype=dtype, std=std, masked=masked)
            for name in AUTOMATON:
                made[f"{name} nd {SMALL} {weights} {dtype}"] = partial(extreme, name)
            made[f"passes nd {SMALL} {weights} window 5 {dtype}"] = partial(extreme, "passes", window=5)
            made[f"{PYTORCH}passes nd {SMALL} {weights} {dtype}"] = partial(extreme, "passes")
        for name in AUTOMATON:
            made[f"{PYTORCH}{name} nd {SMALL} {dtype}"] = partial(_automaton, name, SMALL, dtype)
        for name in ("passes", "steps", "decoding"):
            made[f"{PYTORCH}{name} nd {MIDDLE} {dtype}"] = partial(_automaton, name, MIDDLE, dtype)
        for shape in VECTORS:
            made[f"sup {shape} {dtype}"] = partial(_passes, "sup", shape, dtype)
        for shape in VECTORS[::2]:
            made[f"strat {shape} {dtype}"] = partial(_passes, "strat", shape, dtype)
        for kind in ("sup", "strat"):
            made[f"decoding {kind} {VECTORS[0]} {dtype}"] = partial(_decoding, kind, VECTORS[0], dtype)
            made[f"{PYTORCH}decoding {kind} {VECTORS[0]} {dtype}"] = partial(_decoding, kind, VECTORS[0], dtype)
        made[f"{PYTORCH}sup {VECTORS[0]} {dtype}"] = partial(_passes, "sup", VECTORS[0], dtype)
    for op in ("queue", "input_buffer", "output_buffer"):
        made[f"{op} 60"] = partial(_example, op, 60)
    for stack, size in (("sup-10", 93), ("strat-10", 93), ("ns-2-3", 64), ("nd-2-3-5", 64)):
        for way in ("at once", "steps", "decoding"):
            made[f"LSTM {stack} {way}"] = partial(_lstm, stack, size, way)
        made[f"{PYTORCH}LSTM {stack} steps"] = partial(_lstm, stack, size, "steps")
    for controller, memory, is_buffered in NETWORKS:
        for way in ("at once", "steps"):
            name = f"neural {controller} {memory}{' buffered' * is_buffered} {way}"
            made[name] = partial(_network, controller, memory, is_buffered, way)
    return made


NETWORKS = (
    *((controller, "stack", False) for controller in ("linear", "rnn", "gru", "lstm")),
    *(("lstm", "queue", False), ("linear", "stack", True), ("lstm", "queue", True)),
)


def _passes(kind: str, sizes: tuple[int, ...], dtype: str) -> Run:
    return passes_of(Case(measurable()[kind], sizes), Variant("auto", getattr(torch, dtype)), TIMER)


def _decoding(kind: str, sizes: tuple[int, ...], dtype: str) -> Run:
    return Beam(Case(measurable()[kind], sizes), getattr(torch, dtype), CPU).run(TIMER)


def _example(name: str, length: int) -> Run:
    torch.manual_seed(0)
    (op,) = (op for op in ops.OPS if op.name == name)
    arguments = op.example(torch.rand, length)
    inputs = [x.requires_grad_() for x in arguments if isinstance(x, Tensor)]
    return passes(lambda: op.compute(*arguments), inputs, TIMER)


def _lstm(stack: str, hidden_size: int, way: str) -> Run:
    return runs_of_lstm(Recurrent(stack, hidden_size), TIMER)[way]


def _network(controller: str, memory: str, is_buffered: bool, way: str) -> Run:
    return runs_of_network(Network(controller, memory, is_buffered), TIMER)[way]


def _automaton(
    name: str, sizes: tuple[int, ...], dtype: str, std: float = 1.0, masked: bool = False, **options: Any
) -> Run:
    """A call of AUTOMATON, with random arguments and ``options`` of ``nondeterministic_stack``."""
    batch, length, states, symbols, size = sizes
    torch.manual_seed(0)
    top = states, symbols
    shapes = [(batch, length, *top, *top)] * 2 + [(batch, length, *top, states), (batch, length, size), (size,)]
    inputs = [torch.randn(shape, dtype=getattr(torch, dtype)) for shape in shapes]
    for log_weights in inputs[:3]:
        log_weights *= std
        if masked:
            log_weights.masked_fill_(torch.rand_like(log_weights) < 0.5, -torch.inf)
    return AUTOMATON[name]([x.requires_grad_() for x in inputs], **options)


def _readings(inputs: list[Tensor], **options: Any) -> Run:
    return passes(lambda: ops.nondeterministic_stack(*inputs, **options), inputs, TIMER)


def _log_partition(inputs: list[Tensor]) -> Run:
    return passes(lambda: ops.nondeterministic_stack(*inputs, return_log_partition=True)[1], inputs[:3], TIMER)


def _posterior(inputs: list[Tensor]) -> Run:
    return lambda: ops.transition_posterior(*inputs[:3])


def _best_runs(inputs: list[Tensor]) -> Run:
    return lambda: ops.best_runs(*inputs[:3], count=3)


def _steps(inputs: list[Tensor]) -> Run:
    return passes(lambda: _stepped(inputs), inputs, TIMER)


def _beam(inputs: list[Tensor]) -> Run:
    batch_size, length = inputs[0].shape[:2]
    order = torch.randint(batch_size, (length, batch_size))
    return torch.no_grad()(lambda: _stepped(inputs, order))


def _stepped(inputs: list[Tensor], order: Tensor | None = None) -> Tensor:
    """The readings of single steps, before each of which the rows are reordered."""
    *stepped, bottom = inputs
    batch_size, length, num_states, num_symbols = inputs[0].shape[:4]
    state = ops.NondeterministicStackState.initial(
        bottom, batch_size=batch_size, num_states=num_states, num_symbols=num_symbols
    )
    readings = []
    for t in range(length):
        if order is not None:
            state = state.reorder(order[t])
        reading, state = state.step(*(x[:, t] for x in stepped))
        readings.append(reading)
    return torch.stack(readings, 1)


AUTOMATON: dict[str, Callable[..., Run]] = {
    "passes": _readings,
    "steps": _steps,
    "decoding": _beam,
    "log Z": _log_partition,
    "posterior": _posterior,
    "best runs": _best_runs,
}
"""What users do with the nondeterministic stack."""


def work(measure: Callable[[Run], float]) -> None:
    """Print a measurement or an error for each name on standard input, and all names for an empty line."""
    torch.set_num_threads(1)
    made, prepared = cases(), dict[str, Run]()
    for line in sys.stdin:
        name = line.rstrip("\n")
        try:
            if name and name not in prepared:
                prepared.clear()
                prepared[name] = made[name]()
                prepared[name]()
            answer: Any = measure(prepared[name]) if name else [*made]
        except Exception as error:
            answer = f"{type(error).__name__}: {error}".splitlines()[0]
        print(json.dumps(answer), flush=True)


def milliseconds(run: Run) -> float:
    """The processor time of a run, in a turn of LEAST_MS."""
    start, runs, spent = time.process_time(), 0, 0.0
    while spent < LEAST_MS:
        run()
        runs, spent = runs + 1, 1e3 * (time.process_time() - start)
    return spent / runs


def megabytes(run: Run) -> float:
    """The memory that a run needs at its peak."""
    ops.release_buffers()
    return growth(run)


MEASURES = {"ms": milliseconds, "MB": megabytes}

if __name__ == "__main__":
    work(MEASURES[sys.argv[1]])
