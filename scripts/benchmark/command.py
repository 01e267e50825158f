"""The command line: ``python scripts/benchmark.py``."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import torch

import fairseq_stack
from fairseq_stack.errors import UserError

from .agreement import Disagreement
from .memory import MemoryMeter
from .prototypes import Prototypes, copy_prototypes
from .report import (
    decoding_table,
    machine_lines,
    peak_lines,
    stack_table,
    sweep_table,
    training_table,
)
from .stacks import STACKS, Stack
from .suite import Results, Settings, Suite
from .timing import Timer
from .training import WORKLOADS, tiny
from .variants import dtype_name

DESCRIPTION = """\
Measure, in one run, the stacks by every backend (forward and backward pass, peak
extra memory, GFLOP/s and their share of what the processor can do at most),
decoding with a beam, and training steps of the papers' models. What computes
other numbers than the reference is not measured: exit code 1. "sweep" is measured
if it is asked for: the backend that models use beside the best one, for sizes
from tiny to long."""

EPILOG = """\
examples:
  python scripts/benchmark.py --threads 1 2 --json benchmark.json
  python scripts/benchmark.py --only nd --nd 10,80,3,3,5 4,200,3,3,5 --dtypes float32
  FAIRSEQ_STACK_NATIVE=0 python scripts/benchmark.py --only steps"""

PARTS = (*STACKS, "decoding", "steps")
SWEEP = "sweep"

SIZES = {
    "nd": ["10,40,2,3,5", "16,30,3,3,10", "10,80,3,3,5", "10,100,3,3,5", "4,200,3,3,5", "1,400,3,3,5"],
    "sup": ["10,60,32", "16,30,511", "10,80,511", "10,200,511", "2,400,256"],
    "strat": ["10,60,32", "10,80,511", "10,200,511"],
}
DECODING_SIZES = {
    "nd": ["10,40,2,3,5", "10,80,3,3,5", "10,200,3,3,5"],
    "sup": ["10,80,511", "10,200,511"],
    "strat": ["10,80,511"],
}
SWEEP_SIZES = {
    "nd": [
        *("1,1,1,1,1", "16,1,3,3,5", "1,10,1,1,1", "16,10,2,3,5", "1,10,3,3,64", "64,10,3,3,5", "2,20,5,5,5"),
        *("1,50,1,1,64", "16,50,2,3,5", "1,50,3,3,5", "2,50,2,8,5", "1,200,1,1,1", "1,200,2,3,5", "4,200,3,3,64"),
    ],
    "sup": [
        *("1,1,1", "64,1,512", "1,10,1", "16,10,32", "64,10,512", "1,100,1", "16,100,32", "64,100,512"),
        *("1,300,1", "64,300,4", "16,300,32", "4,300,512", "1,1000,1", "64,1000,1", "4,1000,32", "1,1000,512"),
        *("1,5000,1", "16,5000,1", "1,5000,32", "1,20000,1"),
    ],
    "strat": ["1,2,1", "64,10,32", "16,100,32", "1,1000,512"],
}
QUICK_SIZES = {"nd": ["2,12,2,3,4"], "sup": ["2,12,4"], "strat": ["2,12,4"]}

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
        choices=(*PARTS, SWEEP),
        metavar="PART",
        help=f"of {', '.join(PARTS)} (default: all these) and {SWEEP}",
    )
    parser.add_argument("--threads", nargs="+", type=positive, default=[1], metavar="N", help="default: 1")
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, metavar="DTYPE", help="default: float32 float64")
    parser.add_argument("--device", default="cpu", help="cpu (default), or cuda")
    for name, stack in STACKS.items():
        sizes = ",".join(stack.axes)
        parser.add_argument(f"--{name}", nargs="+", metavar=sizes, help=f"sizes of {name} (default: a list)")
    parser.add_argument("--repeats", type=positive, metavar="N", help="runs of which the fastest counts (default: 12)")
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="of what has taken so long three runs are enough (default: 5)"
    )
    parser.add_argument(
        "--cpu-time", action="store_true", help="measure processor time, for one thread on a machine that is not idle"
    )
    parser.add_argument("--quick", action="store_true", help="tiny sizes, one run: to see whether all works")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to FILE, too")
    parser.add_argument("--prototypes", type=Path, metavar="DIR", help="measure the prototypes in DIR, too")
    args = parser.parse_args(arguments)
    args.only = args.only or [*PARTS]
    args.repeats = args.repeats or (1 if args.quick else 12)
    args.dtypes = args.dtypes or (["float32"] if args.quick else [*DTYPES])
    check_arguments(parser, args)
    return args


def check_arguments(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Exit with code 2 if arguments cannot be followed, before anything is measured."""
    args.cases, args.decoded, args.swept = {}, {}, {}
    for name in STACKS:
        given = getattr(args, name)
        try:
            args.cases[name] = parse_cases(name, given or (QUICK_SIZES if args.quick else SIZES)[name])
            args.decoded[name] = parse_cases(name, given or (QUICK_SIZES if args.quick else DECODING_SIZES)[name])
            args.swept[name] = parse_cases(name, given or (QUICK_SIZES if args.quick else SWEEP_SIZES)[name])
        except ValueError as error:
            parser.error(f"--{name}: {error}")
    try:
        torch.empty(0, device=args.device)
    except (AssertionError, RuntimeError) as error:
        parser.error(f"--device: {args.device} cannot be used: {str(error).splitlines()[0]}")
    if torch.device(args.device).type not in ("cpu", "cuda"):
        parser.error(f"--device: expected cpu or cuda, got {args.device}")
    if args.cpu_time and (args.device != "cpu" or args.threads != [1]):
        parser.error("--cpu-time: measures one thread on the CPU only")
    if args.json is not None and not args.json.absolute().parent.is_dir():
        parser.error(f"--json: there is no folder {args.json.absolute().parent}")
    if args.prototypes is not None and not args.prototypes.is_dir():
        parser.error(f"--prototypes: there is no folder {args.prototypes}")
    if args.prototypes is not None and args.device != "cpu":
        parser.error(f"--prototypes: they run on CPUs only, not on {args.device}")


def positive(text: str) -> int:
    """A positive number of the command line."""
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def parse_cases(name: str, given: Sequence[str]) -> list[Stack]:
    """The cases that lists of sizes such as ``10,80,3,3,5`` stand for.

    Raises:
        ValueError: if one is not as many positive numbers as the stack has sizes.
    """
    stack = STACKS[name]
    cases = []
    for sizes in given:
        parts = sizes.split(",")
        if len(parts) != len(stack.axes) or not all(part.isdecimal() and int(part) > 0 for part in parts):
            raise ValueError(f"expected {','.join(stack.axes)}, got {sizes}")
        cases.append(stack(*map(int, parts)))
    return cases


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


def run(args: argparse.Namespace, folder: Path) -> Results:
    """Measure what is asked for, and print each table as soon as it is there."""
    copy = None
    if args.prototypes is not None:
        copy = folder / "prototypes"
        copy_prototypes(args.prototypes, copy)
    with MemoryMeter(copy) as meter:
        suite = Suite(settings_of(args), meter, None if copy is None else Prototypes(copy))
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
                show(f"Sweep of the stack {name}: the backend that models use, beside the best one", sweep_table(rows))
        if "decoding" in args.only:
            for name in STACKS:
                rows = suite.measure_decoding(args.decoded[name])
                results.decoding += rows
                show(f"Decoding with the stack {name}: a step is one of a beam of B rows", decoding_table(rows))
        if "steps" in args.only:
            for workload in WORKLOADS:
                results.training += suite.measure_training(tiny(workload) if args.quick else workload)
            show("Training steps", training_table(results.training))
    return results


def show(title: str, table: str) -> None:
    """Print a table."""
    print(f"\n## {title}\n\n{table}", flush=True)


def write_json(results: Results, path: Path) -> None:
    """Write all figures, or nothing."""
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(asdict(results), indent=2) + "\n", encoding="utf-8")
    os.replace(part, path)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    args = parse(arguments)
    logging.basicConfig(level=logging.WARNING)  # before fairseq, which would have everything logged
    threads = torch.get_num_threads()
    try:
        with tempfile.TemporaryDirectory() as folder:
            results = run(args, Path(folder))
    except (Disagreement, UserError) as error:
        print(f"benchmark.py: error: {error}", file=sys.stderr)
        return 1
    finally:
        torch.set_num_threads(threads)
    if args.json is not None:
        write_json(results, args.json)
    return 0
