"""The tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fairseq_stack.evaluation.markdown import table

from .peak import Peak
from .rows import Row
from .stacks import STACKS

Column = tuple[str, Callable[[Row], str]]

ABSENT = "-"


def recurrent_table(rows: Sequence[Row]) -> str:
    """Rows of :func:`.rows.recurrent_row`."""
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


def network_table(rows: Sequence[Row]) -> str:
    """Rows of :func:`.rows.network_row`."""
    columns = [
        ("network", lambda row: "buffered" if row["is_buffered"] else "plain"),
        ("controller", _text("controller")),
        ("memory", _text("memory")),
        ("B", _text("batch_size")),
        ("T", _text("length")),
        ("threads", _text("threads")),
        ("forward ms", _number("forward_ms")),
        ("backward ms", _number("backward_ms")),
        ("sum ms", _number("total_ms")),
        ("by steps ms", _number("steps_ms")),
        ("by steps / at once", _number("steps_times_own")),
        ("error", lambda row: f"{row['error']:.0e}"),
    ]
    return _table(columns, rows)


def long_sequence_table(rows: Sequence[Row]) -> str:
    """Rows of :func:`.rows.long_sequence_row`."""
    columns = [
        ("stack", _text("stack")),
        ("n", _text("length")),
        ("D", lambda row: ABSENT if row["window"] is None else str(row["window"])),
        ("forward ms", _number("forward_ms")),
        ("backward ms", _number("backward_ms")),
        ("sum ms", _number("total_ms")),
        ("x the first row of the stack", _number("times_unlimited")),
        ("extra MB", _number("extra_megabytes")),
        ("error", lambda row: f"{row['error']:.0e}"),
    ]
    return _table(columns, rows)


def stack_table(rows: Sequence[Row]) -> str:
    """Rows of :func:`.rows.stack_row` of one stack."""
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
    """Rows of :func:`.rows.sweep_row` of one stack."""
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
    """Rows of :func:`.rows.decoding_row` of one stack."""
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
    """Rows of :func:`.rows.training_row`."""
    columns = [
        ("preset", _text("preset")),
        ("precision", _text("precision")),
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
