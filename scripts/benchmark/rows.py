"""The rows of the tables: the figures that are written to JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .long_sequences import LongSequence
from .networks import Network
from .peak import OPERATIONS
from .recurrent import Recurrent
from .stacks import Case
from .timing import Times
from .variants import Variant, dtype_name

Row = dict[str, Any]


def stack_row(
    case: Case, variant: Variant, threads: int, times: Times, megabytes: float, error: float, peak: float
) -> Row:
    """The figures of one way to compute a stack; ``peak`` is in GFLOP/s, of all cores in use or of the GPU."""
    forward, backward = times
    # The backward pass takes twice the multiply-adds of the forward pass: a product has two factors to differentiate.
    gflops = 3 * OPERATIONS * case.multiply_adds() / (forward + backward) / 1e9
    return {
        "stack": case.stack.name,
        "sizes": case.by_axis(),
        "backend": variant.name,
        "dtype": dtype_name(variant.dtype),
        "threads": threads,
        "forward_ms": 1e3 * forward,
        "backward_ms": 1e3 * backward,
        "total_ms": 1e3 * (forward + backward),
        "extra_megabytes": megabytes,
        "gflops": gflops,
        "share_of_peak": gflops / peak,
        "error": error,
    }


def sweep_row(case: Case, chosen: str, threads: int, times: Mapping[str, Times]) -> Row:
    """The time of ``backend="auto"`` compared with the best backend for a case.

    Args:
        case: the case.
        chosen: the backend that "auto" stands for.
        threads: the number of threads.
        times: of forward and backward pass, of ``chosen`` and of other backends.
    """
    totals = {name: sum(passes) for name, passes in times.items()}
    best = min(totals, key=lambda name: totals[name])
    return {
        "stack": case.stack.name,
        "sizes": case.by_axis(),
        "chosen": chosen,
        "best": best,
        "threads": threads,
        "forward_ms": 1e3 * times[chosen][0],
        "total_ms": 1e3 * totals[chosen],
        "best_ms": 1e3 * totals[best],
        "times_best_forward": times[chosen][0] / min(forward for forward, _ in times.values()),
        "times_best": totals[chosen] / totals[best],
        "times_chosen": {name: total / totals[chosen] for name, total in totals.items() if name != chosen},
    }


def decoding_row(case: Case, dtype: str, threads: int, times: Times, last_steps: int, error: float) -> Row:
    """The figures of decoding."""
    total, last = times
    return {
        "stack": case.stack.name,
        "sizes": case.by_axis(),
        "dtype": dtype,
        "threads": threads,
        "steps_per_second": case.length / total,
        "step_ms": 1e3 * total / case.length,
        "last_step_ms": 1e3 * last / last_steps,
        "error": error,
    }


def training_row(
    preset: str,
    precision: str,
    sizes: Sequence[int],
    threads: int,
    parameters: int,
    times: Times,
    tokens: int,
    baseline: float,
) -> Row:
    """The figures of training steps; ``baseline`` is the time of a step of tf."""
    forward, backward, update, total = times
    return {
        "preset": preset,
        "precision": precision,
        "sentences": sizes[0],
        "length": sizes[1],
        "threads": threads,
        "parameters": parameters,
        "forward_ms": 1e3 * forward,
        "backward_ms": 1e3 * backward,
        "update_ms": 1e3 * update,
        "step_ms": 1e3 * total,
        "tokens_per_second": tokens / total,
        "times_tf": total / baseline,
    }


def recurrent_row(case: Recurrent, threads: int, times: Mapping[str, Times], error: float) -> Row:
    """The figures of an LSTM with stacks.

    Args:
        case: the LSTM.
        threads: the number of threads.
        times: of training it (``own``), of training it step by step (``steps``), of training the loop over
            ``nn.LSTMCell`` (``cells``), and of ten steps of decoding (``decoding``).
        error: of its outputs.
    """
    forward, backward = times["own"]
    steps, cells = sum(times["steps"]), sum(times["cells"])
    return {
        **case._asdict(),
        "threads": threads,
        "forward_ms": 1e3 * forward,
        "backward_ms": 1e3 * backward,
        "total_ms": 1e3 * (forward + backward),
        "steps_ms": 1e3 * steps,
        "cells_ms": 1e3 * cells,
        "times_cells": (forward + backward) / cells,
        "steps_times_cells": steps / cells,
        "steps_per_second": 10 / sum(times["decoding"]),
        "error": error,
    }


def long_sequence_row(case: LongSequence, times: Times, unlimited: Times, megabytes: float, error: float) -> Row:
    """The figures of a sequence; ``unlimited`` are the times of the first one of the same stack."""
    forward, backward = times
    return {
        "stack": case.stack,
        "length": case.length,
        "window": case.window,
        "forward_ms": 1e3 * forward,
        "backward_ms": 1e3 * backward,
        "total_ms": 1e3 * (forward + backward),
        "times_unlimited": (forward + backward) / sum(unlimited),
        "extra_megabytes": megabytes,
        "error": error,
    }


def network_row(case: Network, threads: int, times: Mapping[str, Times], error: float) -> Row:
    """The figures of a neural stack.

    Args:
        case: the network.
        threads: the number of threads.
        times: of training it (``own``), and of training it step by step (``steps``).
        error: of its outputs.
    """
    forward, backward = times["own"]
    steps = sum(times["steps"])
    return {
        **case._asdict(),
        "threads": threads,
        "forward_ms": 1e3 * forward,
        "backward_ms": 1e3 * backward,
        "total_ms": 1e3 * (forward + backward),
        "steps_ms": 1e3 * steps,
        "steps_times_own": steps / (forward + backward),
        "error": error,
    }
