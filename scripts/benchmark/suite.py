"""A whole run: everything is checked before it is measured."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from fairseq_stack.ops._backends import automatic_backend

from . import networks
from .agreement import check
from .decoding import check_decoding, decoding, last_steps
from .long_sequences import LongSequence, check_long_sequence, megabytes_of, passes_of
from .machine import describe_machine
from .memory import MemoryMeter, cuda_megabytes
from .networks import Network, check_network
from .peak import Peak, measure_peak
from .recurrent import (
    Recurrent,
    check_recurrent,
    decoding_of,
    training_by_steps,
    training_of,
    training_of_cells,
)
from .rows import Row, decoding_row, long_sequence_row, network_row, recurrent_row, stack_row, sweep_row, training_row
from .stacks import Case
from .timing import Key, Timer, Times, forward_and_backward, least_times
from .training import Workload, stacks_of, trainings
from .variants import Variant, automatic, backends_of, dtype_name, find_variants


@dataclass(frozen=True)
class Settings:
    """How to measure.

    Attributes:
        timer: measures time, and says on which device.
        dtypes: of the stacks' inputs.
        threads: each of these numbers of threads is measured.
        repeats: runs of which the fastest counts.
        seconds: after this time, three runs are enough.
        matrix_size: of the product that the peak is measured with.
    """

    timer: Timer
    dtypes: Sequence[torch.dtype]
    threads: Sequence[int]
    repeats: int
    seconds: float
    matrix_size: int


@dataclass
class Results:
    """All that was measured.

    Attributes:
        machine: what it depends on.
        peak: by dtype.
        stacks: rows of :func:`.rows.stack_row`.
        sweep: rows of :func:`.rows.sweep_row`.
        decoding: rows of :func:`.rows.decoding_row`.
        training: rows of :func:`.rows.training_row`.
        recurrent: rows of :func:`.rows.recurrent_row`.
        networks: rows of :func:`.rows.network_row`.
        long_sequences: rows of :func:`.rows.long_sequence_row`.
    """

    machine: dict[str, Any]
    peak: dict[str, Peak]
    stacks: list[Row] = field(default_factory=list)
    sweep: list[Row] = field(default_factory=list)
    decoding: list[Row] = field(default_factory=list)
    training: list[Row] = field(default_factory=list)
    recurrent: list[Row] = field(default_factory=list)
    networks: list[Row] = field(default_factory=list)
    long_sequences: list[Row] = field(default_factory=list)


class Suite:
    """Measures, after it has compared with the reference: all methods raise :class:`.agreement.Disagreement`.

    Args:
        settings: how.
        meter: measures memory on the CPU.
    """

    def __init__(self, settings: Settings, meter: MemoryMeter) -> None:
        self._settings = settings
        self._timer = settings.timer
        self._device = settings.timer.device
        self._meter = meter
        machine = describe_machine(self._timer)
        say("measuring the machine's peak")
        self.results = Results(
            machine,
            {
                dtype_name(dtype): measure_peak(self._timer, dtype, 10 * settings.repeats, settings.matrix_size)
                for dtype in settings.dtypes
            },
        )

    @property
    def is_on_cpu(self) -> bool:
        """Whether the processor is measured, and no other device."""
        return self._device.type == "cpu"

    def measure_stack(self, cases: Sequence[Case]) -> list[Row]:
        """Check all cases of a stack, and then measure them."""
        checked = [(case, *self._checked(case)) for case in cases]
        return [row for case, variants, errors in checked for row in self._measure(case, variants, errors)]

    def _checked(self, case: Case) -> tuple[list[Variant], dict[str, float]]:
        say(f"{case}: comparing with the reference")
        found = find_variants(case, self._settings.dtypes, self._device)
        return found, check(case, found, self._device)

    def _measure(self, case: Case, variants: Sequence[Variant], errors: dict[str, float]) -> list[Row]:
        rows = []
        for threads in self._settings.threads:
            torch.set_num_threads(threads)
            say(f"{case}: measuring, threads: {threads}")
            runs = {variant.label: forward_and_backward(case, variant, self._timer) for variant in variants}
            times = self._least_times(runs)
            del runs
            rows += [
                stack_row(
                    case,
                    variant,
                    threads,
                    times[variant.label],
                    self._megabytes(case, variant, threads),
                    errors[variant.label],
                    self._peak(variant.dtype, threads),
                )
                for variant in variants
            ]
        return rows

    def _least_times(self, runs: Mapping[Key, Callable[[], Times]]) -> dict[Key, Times]:
        return least_times(runs, self._settings.repeats, self._settings.seconds)

    def _peak(self, dtype: torch.dtype, threads: int) -> float:
        """GFLOP/s of this many cores, or of the GPU."""
        peak = self.results.peak[dtype_name(dtype)].gflops
        return threads * peak if self.is_on_cpu else peak

    def _megabytes(self, case: Case, variant: Variant, threads: int) -> float:
        if self.is_on_cpu:
            return self._meter.megabytes(case, variant, threads)
        return cuda_megabytes(case, variant, self._device)

    def measure_sweep(self, cases: Sequence[Case]) -> list[Row]:
        """Measure the backend that models use for the cases, and all others except the reference.

        Only small cases are checked, since some of these are large.
        """
        dtype = torch.float32
        for case in cases:
            check(case.small(), [automatic(case.small(), dtype)], self._device)
        rows = []
        for case in cases:
            chosen = automatic_backend(case.stack.backends, self._device).name
            variants = backends_of(case, dtype, self._device)
            for threads in self._settings.threads:
                torch.set_num_threads(threads)
                say(f"{case}: measuring all backends, threads: {threads}")
                runs = {variant.name: forward_and_backward(case, variant, self._timer) for variant in variants}
                rows.append(sweep_row(case, chosen, threads, self._least_times(runs)))
        return rows

    def measure_decoding(self, cases: Sequence[Case]) -> list[Row]:
        """Check decoding of all cases, and then measure it."""
        kinds = [(case, dtype) for case in cases for dtype in self._settings.dtypes]
        errors = {kind: check_decoding(*kind, self._device) for kind in kinds}
        rows = []
        for case, dtype in kinds:
            for threads in self._settings.threads:
                torch.set_num_threads(threads)
                say(f"{case}: decoding in {dtype_name(dtype)}, threads: {threads}")
                times = self._least_times({case: decoding(case, dtype, self._timer)})[case]
                rows.append(
                    decoding_row(case, dtype_name(dtype), threads, times, last_steps(case), errors[case, dtype])
                )
        return rows

    def measure_training(self, workload: Workload, precision: str) -> list[Row]:
        """Measure steps of tf, sup and nd in turn, after a check of their stacks."""
        say(f"{workload.preset('*')} in {precision}: building the models")
        by_kind = trainings(workload, self._timer, precision)
        for training in by_kind.values():
            for case in stacks_of(training.model, workload):
                check(case, [automatic(case, torch.float32)], self._device)
        rows = []
        for threads in self._settings.threads:
            torch.set_num_threads(threads)
            say(f"{workload.preset('*')}: training steps, threads: {threads}")
            runs = {kind: training.step for kind, training in by_kind.items()}
            times = self._least_times(runs)
            rows += [
                training_row(
                    workload.preset(kind),
                    precision,
                    (workload.sentences, workload.length),
                    threads,
                    training.parameters,
                    times[kind],
                    workload.tokens,
                    baseline=times["tf"][-1],
                )
                for kind, training in by_kind.items()
            ]
        return rows

    def measure_recurrent(self, cases: Sequence[Recurrent]) -> list[Row]:
        """Check stack LSTMs, and then measure their training beside a loop over ``nn.LSTMCell``."""
        errors = [check_recurrent(case) for case in cases]
        rows = []
        for threads in self._settings.threads:
            torch.set_num_threads(threads)
            for case, error in zip(cases, errors, strict=True):
                say(f"the LSTM with {case.stacks}: training, threads: {threads}")
                measured = {
                    "own": training_of,
                    "steps": training_by_steps,
                    "cells": training_of_cells,
                    "decoding": decoding_of,
                }
                times = self._least_times({name: run(case, self._timer) for name, run in measured.items()})
                rows.append(recurrent_row(case, threads, times, error))
        return rows

    def measure_networks(self, cases: Sequence[Network]) -> list[Row]:
        """Check neural stacks, and then measure their training beside the same step by step."""
        errors = [check_network(case) for case in cases]
        rows = []
        for threads in self._settings.threads:
            torch.set_num_threads(threads)
            for case, error in zip(cases, errors, strict=True):
                say(f"the neural stack with {case.controller} and {case.memory}: training, threads: {threads}")
                runs = {"own": networks.training_of, "steps": networks.training_by_steps}
                times = self._least_times({name: run(case, self._timer) for name, run in runs.items()})
                rows.append(network_row(case, threads, times, error))
        return rows

    def measure_long_sequences(self, cases: Sequence[LongSequence]) -> list[Row]:
        """Check the stacks on long sequences, and then measure them, with one thread."""
        errors = [check_long_sequence(case) for case in cases]
        torch.set_num_threads(1)
        megabytes = [megabytes_of(case, self._timer) for case in cases]
        say("long sequences")
        first = {case.stack: case for case in reversed(cases)}
        times = self._least_times({case: passes_of(case, self._timer) for case in cases})
        return [
            long_sequence_row(case, times[case], times[first[case.stack]], memory, error)
            for case, memory, error in zip(cases, megabytes, errors, strict=True)
        ]


def say(what: str) -> None:
    """Progress, on standard error."""
    print(f"==> {what}", file=sys.stderr, flush=True)
