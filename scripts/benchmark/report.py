"""The tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fairseq_stack.evaluation.markdown import table

from .peak import OPERATIONS, Peak
from .recurrent import Recurrent
from .stacks import STACKS, Case
from .timing import Times
from .variants import Variant, dtype_name
from .windowed import Windowed

Row = dict[str, Any]
Column = tuple[str, Callable[[Row], str]]

ABSENT = "-"


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
    preset: str, sizes: Sequence[int], threads: int, parameters: int, times: Times, tokens: int, baseline: float
) -> Row:
    """The figures of training steps; ``baseline`` is the time of a step of tf."""
    forward, backward, update, total = times
    return {
        "preset": preset,
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


def windowed_row(case: Windowed, times: Times, unlimited: Times, megabytes: float, error: float) -> Row:
    """The figures of a sequence; ``unlimited`` are the times of the first one, with unlimited memory."""
    forward, backward = times
    return {
        "length": case.length,
        "window": case.window,
        "forward_ms": 1e3 * forward,
        "backward_ms": 1e3 * backward,
        "total_ms": 1e3 * (forward + backward),
        "times_unlimited": (forward + backward) / sum(unlimited),
        "extra_megabytes": megabytes,
        "error": error,
    }


def recurrent_table(rows: Sequence[Row]) -> str:
    """Rows of :func:`recurrent_row`."""
    columns = [
        ("stack", _text("stacks")),
        ("hidden", _text("hidden_size")),
        ("B", _text("batch_size")),
        ("n", _text("length")),
        ("threads", _text("threads")),
        ("forward ms", _number("forward_ms")),
        ("backward ms", _number("backward_ms")),
        ("sum ms", _number("total_ms")),
        ("by steps ms", _number("steps_ms")),
        ("nn.LSTMCell ms", _number("cells_ms")),
        ("x nn.LSTMCell", _number("times_cells")),
        ("by steps x nn.LSTMCell", _number("steps_times_cells")),
        ("decoding steps / s", _number("steps_per_second")),
        ("error", lambda row: f"{row['error']:.0e}"),
    ]
    return _table(columns, rows)


def windowed_table(rows: Sequence[Row]) -> str:
    """Rows of :func:`windowed_row`."""
    columns = [
        ("n", _text("length")),
        ("D", lambda row: ABSENT if row["window"] is None else str(row["window"])),
        ("forward ms", _number("forward_ms")),
        ("backward ms", _number("backward_ms")),
        ("sum ms", _number("total_ms")),
        ("x the first row", _number("times_unlimited")),
        ("extra MB", _number("extra_megabytes")),
        ("error", lambda row: f"{row['error']:.0e}"),
    ]
    return _table(columns, rows)


def stack_table(rows: Sequence[Row]) -> str:
    """Rows of :func:`stack_row` of one stack."""
    columns = [
        _sizes(rows[0]["stack"]),
        ("backend", _text("backend")),
        ("dtype", _text("dtype")),
        ("threads", _text("threads")),
        ("forward ms", _number("forward_ms")),
        ("backward ms", _number("backward_ms")),
        ("sum ms", _number("total_ms")),
        ("extra MB", _number("extra_megabytes")),
        ("GFLOP/s", _number("gflops")),
        ("of peak", _percentage("share_of_peak")),
        ("error", lambda row: f"{row['error']:.0e}"),
    ]
    return _table(columns, rows)


def sweep_table(rows: Sequence[Row]) -> str:
    """Rows of :func:`sweep_row` of one stack."""
    columns = [
        _sizes(rows[0]["stack"]),
        ("auto is", _text("chosen")),
        ("threads", _text("threads")),
        ("forward ms", _number("forward_ms")),
        ("sum ms", _number("total_ms")),
        ("auto / best, forward", _ratio("times_best_forward")),
        ("auto / best, sum", _ratio("times_best")),
        ("others / auto, sum", lambda row: _others(row["times_chosen"])),
    ]
    return _table(columns, rows)


def _others(ratios: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {ratio:.1f}" for name, ratio in ratios.items()) or ABSENT


def decoding_table(rows: Sequence[Row]) -> str:
    """Rows of :func:`decoding_row` of one stack."""
    columns = [
        _sizes(rows[0]["stack"]),
        ("dtype", _text("dtype")),
        ("threads", _text("threads")),
        ("steps/s", _number("steps_per_second")),
        ("ms a step", _number("step_ms")),
        ("ms a step at the end", _number("last_step_ms")),
    ]
    return _table(columns, rows)


def training_table(rows: Sequence[Row]) -> str:
    """Rows of :func:`training_row`."""
    columns = [
        ("preset", _text("preset")),
        ("sentences x tokens", lambda row: f"{row['sentences']} x {row['length']}"),
        ("parameters", lambda row: f"{row['parameters']:,}"),
        ("threads", _text("threads")),
        ("forward ms", _number("forward_ms")),
        ("backward ms", _number("backward_ms")),
        ("update ms", _number("update_ms")),
        ("step ms", _number("step_ms")),
        ("tokens/s", _number("tokens_per_second")),
        ("x tf", _ratio("times_tf")),
    ]
    return _table(columns, rows)


def machine_lines(machine: Mapping[str, Any]) -> Iterator[str]:
    """The machine, a fact a line."""
    for name, fact in machine.items():
        yield f"- {name}: {fact}"


def peak_lines(peaks: Mapping[str, Peak], is_cpu: bool) -> Iterator[str]:
    """What shares are given of."""
    where = "one core" if is_cpu else "the GPU"
    for dtype, peak in peaks.items():
        product = f"a product of large matrices {peak.matrix_product:.0f} GFLOP/s"
        if peak.multiply_add is None:
            no_loop = " (no C compiler to measure more with)" if is_cpu else ""
            yield f"- peak of {where}, {dtype}: {product}{no_loop}"
        else:
            yield f"- peak of {where}, {dtype}: multiply-adds in registers {peak.multiply_add:.0f} GFLOP/s; {product}"


def _sizes(stack: str) -> Column:
    return ", ".join(STACKS[stack].axes), lambda row: ", ".join(map(str, row["sizes"].values()))


def _text(key: str) -> Callable[[Row], str]:
    return lambda row: str(row[key])


def _number(key: str) -> Callable[[Row], str]:
    """Three digits, or all those before the point."""

    def cell(row: Row) -> str:
        number = row[key]
        return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"

    return cell


def _percentage(key: str) -> Callable[[Row], str]:
    return lambda row: f"{100 * row[key]:.0f} %"


def _ratio(key: str) -> Callable[[Row], str]:
    return lambda row: f"{row[key]:.2f}"


def _table(columns: Sequence[Column], rows: Sequence[Row]) -> str:
    return table([name for name, _ in columns], [[cell(row) for _, cell in columns] for row in rows])
