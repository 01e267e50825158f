"""The command line: ``python scripts/benchmark.py``."""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import torch

import fairseq_stack
from fairseq_stack.errors import UserError
from fairseq_stack.files import require_writable, written_whole

from .agreement import Disagreement
from .long_sequences import LONG_SEQUENCES
from .memory import MemoryMeter
from .networks import NETWORKS
from .recurrent import RECURRENT
from .report import (
    decoding_table,
    long_sequence_table,
    machine_lines,
    network_table,
    peak_lines,
    recurrent_table,
    stack_table,
    sweep_table,
    training_table,
)
from .stacks import STACKS, Case, Stack
from .suite import Results, Settings, Suite
from .timing import Timer
from .training import PRECISIONS, WORKLOADS, tiny
from .variants import dtype_name

DESCRIPTION = """\
Measure every backend of the stacks (forward and backward pass, peak extra memory,
GFLOP/s and their share of the machine's peak), decoding with a beam, and training
steps of the papers' models, all in one run. A backend that disagrees with the
reference ends the run with exit code 1. Four parts run only if they are named:
"sweep" compares the backend that models use with the best one, for sizes from tiny to
long; "lstm" trains stack LSTMs beside a loop over nn.LSTMCell; "neural" trains neural
stacks at once and step by step; "window" has long sequences, with stacks of limited
memory or depth."""

EPILOG = """\
examples:
  python scripts/benchmark.py --threads 1 2 --json benchmark.json
  python scripts/benchmark.py --only nd --nd 10,80,3,3,5 4,200,3,3,5 --dtypes float32
  FAIRSEQ_STACK_NATIVE=0 python scripts/benchmark.py --only steps"""

PARTS = (*STACKS, "decoding", "steps")
SWEEP, LSTM, NEURAL, WINDOW = "sweep", "lstm", "neural", "window"
NAMED = (SWEEP, LSTM, NEURAL, WINDOW)

DTYPES = {dtype_name(dtype): dtype for dtype in (torch.float32, torch.float64)}


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line, and fill in what depends on other options."""
    parser = argparse.ArgumentParser(
        prog="benchmark.py",
        description=DESCRIPTION,
        epilog=EPILOG,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=(*PARTS, *NAMED),
        metavar="PART",
        help=f"any of {', '.join(PARTS)} (default: all of these), {', '.join(NAMED)}",
    )
    parser.add_argument("--threads", nargs="+", type=positive, default=[1], metavar="N", help="default: 1")
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, metavar="DTYPE", help="default: float32 float64")
    parser.add_argument("--device", default="cpu", help="cpu (default), or cuda")
    parser.add_argument(
        "--precisions", nargs="+", choices=PRECISIONS, default=["float32"], metavar="PRECISION",
        help="of training steps, as options of fairseq-train: any of float32 (default), fp16, amp (both for cuda)",
    )  # fmt: skip
    for name, stack in STACKS.items():
        sizes = ",".join(stack.axes)
        parser.add_argument(f"--{name}", nargs="+", metavar=sizes, help=f"sizes of {name} (default: a list)")
    parser.add_argument("--repeats", type=positive, metavar="N", help="runs; the fastest one counts (default: 12)")
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="after this time, three runs are enough (default: 5)"
    )
    parser.add_argument(
        "--cpu-time", action="store_true", help="measure processor time (one thread), for a machine that is not idle"
    )
    parser.add_argument("--quick", action="store_true", help="tiny sizes, one run: check that everything works")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all figures to FILE")
    args = parser.parse_args(arguments)
    args.only = args.only or [*PARTS]
    args.repeats = args.repeats or (1 if args.quick else 12)
    args.dtypes = args.dtypes or (["float32"] if args.quick else [*DTYPES])
    check_arguments(parser, args)
    return args


def check_arguments(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Exit with code 2 if the arguments cannot be satisfied, before anything is measured."""
    args.cases, args.decoded, args.swept = {}, {}, {}
    for name, stack in STACKS.items():
        try:
            given = [parse_sizes(stack, sizes) for sizes in getattr(args, name) or ()]
        except ValueError as error:
            parser.error(f"--{name}: {error}")
        for cases, sizes in ((args.cases, stack.timed), (args.decoded, stack.decoded), (args.swept, stack.swept)):
            cases[name] = [Case(stack, one) for one in given or (stack.quick if args.quick else sizes)]
    try:
        torch.empty(0, device=args.device)
    except (AssertionError, RuntimeError) as error:
        parser.error(f"--device: {args.device} cannot be used: {str(error).splitlines()[0]}")
    if torch.device(args.device).type not in ("cpu", "cuda"):
        parser.error(f"--device: expected cpu or cuda, got {args.device}")
    if args.device != "cpu" and {LSTM, NEURAL, WINDOW} & {*args.only}:
        parser.error(f"--only: {LSTM}, {NEURAL} and {WINDOW} are measured on the CPU only")
    if args.device == "cpu" and args.precisions != ["float32"]:
        parser.error("--precisions: fp16 and amp need --device cuda")
    if args.cpu_time and (args.device != "cpu" or args.threads != [1]):
        parser.error("--cpu-time: measures one thread on the CPU only")
    if args.json is not None and not args.json.absolute().parent.is_dir():
        parser.error(f"--json: there is no folder {args.json.absolute().parent}")


def positive(text: str) -> int:
    """A positive number of the command line."""
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def parse_sizes(stack: Stack, text: str) -> tuple[int, ...]:
    """The sizes that a text such as ``10,80,3,3,5`` stands for.

    Raises:
        ValueError: if it is not as many positive numbers as the stack has sizes.
    """
    parts = text.split(",")
    if len(parts) != len(stack.axes) or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise ValueError(f"expected {','.join(stack.axes)}, got {text}")
    return tuple(map(int, parts))


def settings_of(args: argparse.Namespace) -> Settings:
    """How the command line says to measure."""
    timer = Timer(torch.device(args.device), time.process_time if args.cpu_time else time.perf_counter)
    large = 1024 if timer.device.type == "cpu" else 8192
    return Settings(
        timer=timer,
        dtypes=[DTYPES[name] for name in args.dtypes],
        threads=args.threads,
        repeats=args.repeats,
        seconds=args.seconds,
        matrix_size=128 if args.quick else large,
    )


def run(args: argparse.Namespace) -> Results:
    """Measure what the arguments ask for, and print each table as soon as it is complete."""
    with MemoryMeter() as meter:
        suite = Suite(settings_of(args), meter)
        results = suite.results
        results.machine["fairseq_stack"] = fairseq_stack.__version__
        print("# Benchmark\n", *machine_lines(results.machine), sep="\n")
        print(*peak_lines(results.peak, suite.is_on_cpu), sep="\n", flush=True)
        for name in STACKS:
            if name in args.only:
                rows = suite.measure_stack(args.cases[name])
                results.stacks += rows
                show(f"Stack {name}: forward and backward pass", stack_table(rows))
        if SWEEP in args.only:
            for name in STACKS:
                rows = suite.measure_sweep(args.swept[name])
                results.sweep += rows
                show(f"Sweep of the stack {name}: the backend that models use, and the best one", sweep_table(rows))
        if "decoding" in args.only:
            for name in STACKS:
                rows = suite.measure_decoding(args.decoded[name])
                results.decoding += rows
                show(f"Decoding with the stack {name}: each step advances a beam of B rows", decoding_table(rows))
        if "steps" in args.only:
            for precision in args.precisions:
                for workload in WORKLOADS:
                    results.training += suite.measure_training(tiny(workload) if args.quick else workload, precision)
            show("Training steps", training_table(results.training))
        if LSTM in args.only:
            cases = [case._replace(batch_size=2, length=5) for case in RECURRENT] if args.quick else RECURRENT
            results.recurrent = suite.measure_recurrent(cases)
            show("Training stack LSTMs, beside a loop over nn.LSTMCell", recurrent_table(results.recurrent))
        if NEURAL in args.only:
            short = [case._replace(batch_size=2, length=5) for case in NETWORKS] if args.quick else NETWORKS
            results.networks = suite.measure_networks(short)
            show("Training neural stacks, at once and step by step", network_table(results.networks))
        if WINDOW in args.only:
            results.long_sequences = suite.measure_long_sequences(LONG_SEQUENCES[:2] if args.quick else LONG_SEQUENCES)
            title = "Long sequences: B = 1, float32; nd: Q = 2, S = 3, m = 5; sup and strat: m = 64"
            show(title, long_sequence_table(results.long_sequences))
    return results


def show(title: str, table: str) -> None:
    """Print a table."""
    print(f"\n## {title}\n\n{table}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    args = parse(arguments)
    logging.basicConfig(level=logging.WARNING)  # before fairseq, which would log everything
    threads = torch.get_num_threads()
    try:
        if args.json is not None:
            require_writable(args.json)
        results = run(args)
        if args.json is not None:
            with written_whole(args.json) as file:
                file.write(json.dumps(asdict(results), indent=2).encode() + b"\n")
    except (Disagreement, UserError) as error:
        print(f"benchmark.py: error: {error}", file=sys.stderr)
        return 1
    finally:
        torch.set_num_threads(threads)
    return 0
