"""Random calls of the ops and the states: each ends with what the reference returns, or with one clear error.

    python -m tests.ops.fuzz 12345                  # the call of this seed: what it is, and whether it is right
    python -m tests.ops.fuzz --calls 10000          # many, and a line that reproduces it for each that is wrong

A call is made from one integer. It is compared with the reference in float64, by values and mostly gradients, normwise:
to 1e-9 in float64, and else to ``TOLERANCES`` and ten times the error of the reference itself in the same dtype. As
gradients may be as small as the rounding errors of what cancels out in them, these are allowed, too.
"""

from __future__ import annotations

import argparse
import faulthandler
import functools
import random
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from fairseq_stack import ops
from fairseq_stack.ops.nondeterministic.reference import nondeterministic_stack_reference
from tests.helpers import assert_normwise_close
from tests.ops.fuzz_calls import LAYOUTS, MODES, TOLERANCES, Arguments, Call, make

SECONDS = 300  # more than any call takes


def neural_stack(
    x: Tensor, weight: Tensor, bias: Tensor, setup: ops.ControllerSetup, steps: int, backend: str, **cell: Tensor
) -> Tensor:
    """``ops.neural_stack`` with a cell of named weights, and all that it returns in one tensor."""
    outputs = ops.neural_stack(x, weight, bias, [*cell.values()], setup, steps, backend=backend)
    return torch.cat([y.flatten(1) for y in outputs], 1)


OPS: dict[str, Callable[..., Tensor]] = {
    "superposition_stack": ops.superposition_stack,
    "stratification_stack": ops.stratification_stack,
    "nondeterministic_stack": ops.nondeterministic_stack,
    "queue": ops.queue,
    "input_buffer": ops.input_buffer,
    "output_buffer": ops.output_buffer,
    "neural_stack": neural_stack,
}


def name_of(call: Call) -> str:
    """The op's."""
    return call.stack if call.stack in OPS else f"{call.stack}_stack"


class Wrong(AssertionError):
    """A call that ended with neither the right result nor a clear error."""


def result(call: Call, backend: str, leaves: dict[str, Tensor]) -> list[Tensor]:
    """The readings by a backend; the steps of the state with "steps"."""
    arguments: Arguments = {name: LAYOUTS[call.layouts[name]](x) for name, x in leaves.items()}
    if backend != "steps":
        arguments = call.spoil(arguments) | _options(call)
        with MODES[call.mode]():
            return [OPS[name_of(call)](**arguments, backend=backend)]
    state = _initial(call, arguments.pop("bottom", None), arguments.pop("start", None))
    draw = random.Random(call.seed)
    readings, batch_size = [], len(leaves["values"])
    for t in range(leaves["values"].shape[1]):
        index = torch.tensor([draw.randrange(batch_size) for _ in range(batch_size)], dtype=torch.long)
        step = {name: x[:, t] for name, x in arguments.items()}
        step = _of_step(call.spoil(_join(step) if call.joined else step))
        with MODES[call.mode]():
            state = state.reorder(index)
            reading, state = (state.step_joined if call.joined else state.step)(**step)
        readings.append(reading)
    state.reorder(torch.tensor([], dtype=torch.long))
    return readings


def expected(call: Call, leaves: dict[str, Tensor]) -> list[Tensor]:
    """What ``result`` has to be, by the reference."""
    arguments = {name: LAYOUTS[call.layouts[name]](x) for name, x in leaves.items()}
    stack: Callable[..., Any] = functools.partial(OPS[name_of(call)], backend="reference", **_options(call))
    if "start" in arguments:  # which only states take
        stack = functools.partial(_reference_readings, **_options(call))
    if not call.steps:
        return [stack(**arguments)]
    draw = random.Random(call.seed)
    readings, batch_size, rows = [], len(leaves["values"]), None
    for _ in range(leaves["values"].shape[1]):
        index = [draw.randrange(batch_size) for _ in range(batch_size)]
        rows = [[*(rows[i] if rows else [i]), j] for j, i in enumerate(index)]
        readings.append(stack(**{name: _history(name, x, rows) for name, x in arguments.items()})[:, -1])
    return readings


def _reference_readings(**arguments: Any) -> Tensor:
    readings, _ = nondeterministic_stack_reference(**arguments, return_weights=False)
    return readings


def _history(name: str, x: Tensor, rows: list[list[int]]) -> Tensor:
    """What each beam has been given: row ``rows[i][t + 1]`` at step t, and bottom and start of row ``rows[i][0]``."""
    if name in ("bottom", "start"):
        return x if x.dim() == 1 else x[[row[0] for row in rows]]
    if not rows:
        return x
    return torch.stack([torch.stack([x[j, t] for t, j in enumerate(row[1:])]) for row in rows])


def _options(call: Call) -> dict[str, Any]:
    return call.options if call.window is None else {"window": call.window}


def _join(step: Arguments) -> Arguments:
    """The arguments of ``step`` as those of ``step_joined``."""
    push, replace, pop, values = step.values()
    return {"transitions": torch.cat([push.flatten(3), replace.flatten(3), pop], -1).flatten(1), "values": values}


def _initial(call: Call, bottom: Tensor | None, start: Tensor | None) -> Any:
    batch_size, _, size = call.vectors.shape
    if bottom is not None:
        num_states, num_symbols = call.leaves["push"].shape[2:4]
        return ops.NondeterministicStackState.initial(
            bottom, batch_size=batch_size, num_states=num_states, num_symbols=num_symbols, start=start, **_options(call)
        )
    kinds: dict[str, Any] = {
        "superposition": ops.SuperpositionStackState,
        "stratification": ops.StratificationStackState,
        "queue": ops.QueueState,
    }
    return kinds[call.stack].initial(batch_size=batch_size, size=size, dtype=call.dtype, **_options(call))


def _of_step(arguments: Arguments) -> Arguments:
    return {"value" if name == "values" else name: x for name, x in arguments.items()}


def check(call: Call) -> str:
    """Make the call; how it ended.

    Raises:
        Wrong: if it ended with neither the right result nor a clear error.
    """
    backend = "steps" if call.steps else call.backend
    never_called = call.steps and call.vectors.shape[1] == 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            readings = result(call, backend, call.leaves)
    except ValueError as error:
        message = str(error)
        named = re.match(r"(\w+): (expected|backend) ", message)
        names = {*call.leaves, "value", "transitions", name_of(call)}
        if not call.fault or named is None or named.group(1) not in names or "\n" in message:
            raise Wrong(f"ValueError: {message}") from error
        return "error"
    except Exception as error:
        raise Wrong(f"{type(error).__name__}: {error}") from error
    if call.fault and not never_called:
        raise Wrong("no error")
    _compare(call, readings)
    return "result"


def _compare(call: Call, readings: list[Tensor]) -> None:
    narrow = {name: x.detach().requires_grad_(x.requires_grad) for name, x in call.leaves.items()}
    wide = {name: x.detach().double().requires_grad_(x.requires_grad) for name, x in call.leaves.items()}
    gradients = call.mode in ("gradients", "autocast") and call.smooth and any(x.requires_grad for x in wide.values())
    call.layouts = {name: "contiguous" if layout == "subclass" else layout for name, layout in call.layouts.items()}
    exact, rounded = expected(call, wide), expected(call, narrow)
    if any(reading.dtype != call.dtype for reading in readings):
        raise Wrong(f"readings of {readings[0].dtype}")
    numbers = torch.Generator().manual_seed(call.seed)
    cotangents = [torch.randn(x.shape, generator=numbers, dtype=torch.float64) for x in exact]
    largest = max((float(x.detach().abs().amax()) for x in (*cotangents, call.vectors) if x.numel()), default=1.0)
    rounding = 64 * torch.finfo(call.dtype).eps * largest**2
    triples = [(*same, "readings") for same in zip(readings, exact, rounded, strict=True)]
    if gradients and exact:
        gradients_of = [
            _gradients(results, leaves, cotangents)
            for results, leaves in ((readings, call.leaves), (exact, wide), (rounded, narrow))
        ]
        triples += [(*same, f"gradient {i}") for i, same in enumerate(zip(*gradients_of, strict=True))]
    for actual, wanted, rough, name in triples:
        tolerance = TOLERANCES[call.dtype]
        if name != "readings" and (scale := float(wanted.abs().amax()) if wanted.numel() else 0.0):
            tolerance += rounding / scale
        if call.dtype != torch.float64:
            tolerance += 10 * _error(rough, wanted)
        try:
            assert_normwise_close(actual, wanted, tolerance, name)
        except AssertionError as error:
            raise Wrong(str(error)) from error


def _gradients(results: list[Tensor], leaves: dict[str, Tensor], cotangents: list[Tensor]) -> tuple[Tensor, ...]:
    loss = sum((x.double() * cotangent).sum() for x, cotangent in zip(results, cotangents, strict=True))
    assert isinstance(loss, Tensor)
    tracked = [x for x in leaves.values() if x.requires_grad]
    if not loss.requires_grad:  # as of an empty sequence
        return tuple(torch.zeros_like(x) for x in tracked)
    return torch.autograd.grad(loss, tracked, materialize_grads=True)


def _error(actual: Tensor, expected: Tensor) -> float:
    if expected.numel() == 0:
        return 0.0
    return float(((actual - expected).abs().max() / (expected.abs().max() or 1)).detach())


def report(seed: int, problem: BaseException) -> str:
    """The line that reproduces a call, and what is wrong with it."""
    return f"python -m tests.ops.fuzz {seed}   # {make(seed)}: {' '.join(str(problem).split())}"


def run(
    seeds: Sequence[int],
    progress: Callable[[int, int], None] = lambda seed, failures: None,
    failed: Callable[[str], None] = lambda line: None,
) -> tuple[dict[str, int], list[str]]:
    """Make the calls of all seeds; how many ended how, and a line for each that was wrong."""
    endings = {"result": 0, "error": 0}
    failures: list[str] = []
    for seed in seeds:
        progress(seed, len(failures))
        try:
            endings[check(make(seed))] += 1
        except Wrong as problem:
            failures.append(report(seed, problem))
            failed(failures[-1])
    return endings, failures


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.ops.fuzz", description=__doc__.split("\n")[0])
    parser.add_argument("seed", type=int, nargs="?", help="make the call of this seed alone")
    parser.add_argument("--calls", type=int, default=10_000, metavar="N", help="make so many calls (default: 10000)")
    parser.add_argument("--start", type=int, default=0, metavar="SEED", help="the first seed (default: 0)")
    options = parser.parse_args()
    faulthandler.enable()
    torch.set_num_threads(1)
    seeds = range(options.start, options.start + options.calls)
    if options.seed is not None:
        seeds = range(options.seed, options.seed + 1)
        print(make(options.seed), flush=True)

    def progress(seed: int, failures: int) -> None:
        # A crash or a hang leaves the seed on the screen.
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        done = seed - seeds.start
        bar = "#" * (30 * done // len(seeds))
        print(f"\r[{bar:30}] {done}/{len(seeds)}, {failures} wrong, seed {seed}", end="", file=sys.stderr, flush=True)

    endings, failures = run(seeds, progress, lambda line: print(f"\n{line}", flush=True))
    print(file=sys.stderr)
    print(f"{endings['result']} right results, {endings['error']} clear errors, {len(failures)} wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
