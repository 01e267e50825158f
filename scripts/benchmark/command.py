"""The command line: ``python scripts/benchmark.py``."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

import fairseq_stack
from fairseq_stack.errors import UserError
from fairseq_stack.files import require_writable, written_whole
from fairseq_stack.kinds import Kind

from . import authors, authors_lstms, decoding, long_sequences, networks, recurrent, sequences, training
from .agreement import Disagreement
from .cases import Case, axes_of, dtype_name, first_of_each_op, measurable, quick_sizes, sizes_of
from .machine import describe_machine
from .tables import Columns, Row, table_of
from .timing import Settings, Timer

DESCRIPTION = """\
Measure every backend of the stacks (forward and backward pass, peak extra memory),
decoding with a beam, and training steps of the papers' models, all in one run. A
backend that disagrees with the reference ends the run with exit code 1. Four parts
run only if they are named: "lstm" compares stack LSTMs in training with a loop over
nn.LSTMCell; "neural" trains neural stacks at once and step by step; "window" has long
sequences, with stacks of limited memory or depth; "authors" compares layers and LSTMs
with their authors' code."""

EPILOG = """\
examples:
  python scripts/benchmark.py --threads 1 2 --json benchmark.json
  python scripts/benchmark.py --only nd --nd 10,80,3,3,5 4,200,3,3,5 --dtypes float32
  FAIRSEQ_STACK_NATIVE=0 python scripts/benchmark.py --only steps"""

DECODING, STEPS = "decoding", "steps"
LSTM, NEURAL, WINDOW, AUTHORS = "lstm", "neural", "window", "authors"
NAMED = (LSTM, NEURAL, WINDOW, AUTHORS)

DTYPES = {dtype_name(dtype): dtype for dtype in (torch.float32, torch.float64)}


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line, and fill in what depends on other options."""
    stacks, default = measurable(), (*first_of_each_op(), DECODING, STEPS)
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
        choices=(*stacks, DECODING, STEPS, *NAMED),
        metavar="PART",
        help=f"any of {', '.join(default)} (default: all of these), "
        f"{', '.join([*(name for name in stacks if name not in default), *NAMED])}",
    )
    parser.add_argument("--threads", nargs="+", type=positive, default=[1], metavar="N", help="default: 1")
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, metavar="DTYPE", help="default: float32 float64")
    parser.add_argument("--device", default="cpu", help="cpu (default), or cuda")
    parser.add_argument(
        "--precisions", nargs="+", choices=training.PRECISIONS, default=["float32"], metavar="PRECISION",
        help="of training steps, as options of fairseq-train: any of float32 (default), fp16, bf16 (for cuda)",
    )  # fmt: skip
    for name, kind in stacks.items():
        sizes = ",".join(axes_of(kind))
        parser.add_argument(f"--{name}", nargs="+", metavar=sizes, help=f"sizes of {name} (default: a list)")
    parser.add_argument("--repeats", type=positive, metavar="N", help="runs; the fastest one counts (default: 12)")
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="after this time, three runs are enough (default: 5)"
    )
    parser.add_argument(
        "--cpu-time", action="store_true", help="measure processor time (one thread), for a machine that is not idle"
    )
    parser.add_argument("--quick", action="store_true", help="tiny sizes, one run: check that everything works")
    parser.add_argument(
        "--authors", nargs="+", type=Path, metavar="CLONE",
        help="for --only authors: a clone of bdusell/stack-attention, for layers, and perhaps a clone of "
        "bdusell/nondeterministic-stack-rnn, for LSTMs",
    )  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all measurements to FILE")
    args = parser.parse_args(arguments)
    args.only = args.only or [*default]
    args.repeats = args.repeats or (1 if args.quick else 12)
    args.dtypes = args.dtypes or (["float32"] if args.quick else [*DTYPES])
    check_arguments(parser, args)
    return args


def check_arguments(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Exit with code 2 if the arguments cannot be satisfied, before anything is measured."""
    args.timed, args.decoded = {}, {}
    for name, kind in measurable().items():
        try:
            listed = tuple(parse_sizes(kind, sizes) for sizes in getattr(args, name) or ())
        except ValueError as error:
            parser.error(f"--{name}: {error}")
        for part in ("timed", "decoded"):
            usual = (quick_sizes(kind),) if args.quick else sizes_of(kind, part)
            getattr(args, part)[name] = [Case(kind, sizes) for sizes in listed or usual]
    try:
        torch.empty(0, device=args.device)
    except (AssertionError, RuntimeError) as error:
        parser.error(f"--device: {args.device} cannot be used: {str(error).splitlines()[0]}")
    if args.device != "cpu" and {LSTM, NEURAL, WINDOW} & {*args.only}:
        parser.error(f"--only: {LSTM}, {NEURAL} and {WINDOW} are measured on the CPU only")
    if (args.authors is None) == (AUTHORS in args.only):
        parser.error(f"--authors: expected a folder with --only {AUTHORS}, and only then")
    if len(args.authors or ()) > (2 if args.device == "cpu" else 1):
        parser.error("--authors: expected one clone, or two on the CPU")
    if args.device == "cpu" and args.precisions != ["float32"]:
        parser.error("--precisions: fp16 and bf16 need --device cuda")
    if args.cpu_time and (args.device != "cpu" or args.threads != [1]):
        parser.error("--cpu-time: measures one thread on the CPU only")


def positive(text: str) -> int:
    """A positive number of the command line."""
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def parse_sizes(kind: Kind, text: str) -> tuple[int, ...]:
    """The sizes that a text such as ``10,80,3,3,5`` stands for.

    Raises:
        ValueError: if it is not as many positive numbers as the stack has sizes.
    """
    parts = text.split(",")
    if len(parts) != len(axes_of(kind)) or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise ValueError(f"expected {','.join(axes_of(kind))}, got {text}")
    return tuple(map(int, parts))


def settings_of(args: argparse.Namespace) -> Settings:
    """How the command line says to measure."""
    timer = Timer(torch.device(args.device), time.process_time if args.cpu_time else time.perf_counter)
    return Settings(timer, [DTYPES[name] for name in args.dtypes], args.threads, args.repeats, args.seconds)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Measure what the arguments ask for, and print each table as soon as it is complete; return all measurements."""
    settings = settings_of(args)
    machine = {**describe_machine(settings.timer), "fairseq_stack": fairseq_stack.__version__}
    print("# Benchmark\n", *(f"- {name}: {fact}" for name, fact in machine.items()), sep="\n", flush=True)
    figures: dict[str, Any] = {"machine": machine}
    for part, title, columns, rows in _tables(args, settings):
        figures.setdefault(part, []).extend(rows)
        print(f"\n## {title}\n\n{table_of(columns, rows)}", flush=True)
    return figures


def _tables(args: argparse.Namespace, settings: Settings) -> Iterator[tuple[str, str, Columns, list[Row]]]:
    """Measure part after part: what its measurements are called, the title of its table, the columns and the rows."""
    names = [name for name in args.timed if name in args.only]
    for name in names:
        cases = args.timed[name]
        rows = sequences.measure_stack(cases, settings)
        yield "stacks", f"Stack {name}: forward and backward pass", sequences.stack_columns(cases[0]), rows
    if AUTHORS in args.only:
        title = "Next to the authors' code: forward and backward pass"
        yield "authors", title, authors.COLUMNS, [*authors.measure(_by_authors(args, settings), settings)]
    if DECODING in args.only:
        for name in names or first_of_each_op():
            cases = args.decoded[name]
            title = f"Decoding with the stack {name}: each step advances a beam of B rows"
            yield "decoding", title, decoding.columns(cases[0]), decoding.measure(cases, settings)
    if STEPS in args.only:
        workloads = [training.tiny(x) if args.quick else x for x in training.WORKLOADS]
        each = [(workload, precision) for precision in args.precisions for workload in workloads]
        rows = [row for workload, precision in each for row in training.measure(workload, precision, settings)]
        yield "training", "Training steps", training.COLUMNS, rows
    if LSTM in args.only:
        lstms = [x._replace(batch_size=2, length=5) if args.quick else x for x in recurrent.CASES]
        title = "Training stack LSTMs, compared with a loop over nn.LSTMCell"
        yield "recurrent", title, recurrent.COLUMNS, recurrent.measure(lstms, settings)
    if NEURAL in args.only:
        stacks = [x._replace(batch_size=2, length=5) if args.quick else x for x in networks.CASES]
        title = "Training neural stacks, at once and step by step"
        yield "networks", title, networks.COLUMNS, networks.measure(stacks, settings)
    if WINDOW in args.only:
        long = long_sequences.CASES[:2] if args.quick else long_sequences.CASES
        title = "Long sequences: B = 1, float32; nd: Q = 2, S = 3, m = 5; sup and strat: m = 64"
        yield "long_sequences", title, long_sequences.COLUMNS, long_sequences.measure(long, settings)


def _by_authors(args: argparse.Namespace, settings: Settings) -> list[authors.Comparison]:
    """What is compared with the code of its authors."""
    layers = [case.small() for case in authors.LAYERS] if args.quick else authors.LAYERS
    lstms = [x._replace(batch_size=2, length=5) if args.quick else x for x in authors_lstms.LSTMS]
    clone, *others = args.authors
    of_others = [comparison for other in others for comparison in authors_lstms.lstms(other, lstms)]
    return authors.layers(clone, layers, settings.device) + of_others


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    threads = torch.get_num_threads()
    try:
        args = parse(arguments)
        if args.json is not None:
            require_writable(args.json)
        figures = run(args)
        if args.json is not None:
            with written_whole(args.json) as file:
                file.write(json.dumps(figures, indent=2).encode() + b"\n")
    except (Disagreement, UserError, NotImplementedError) as error:
        print(f"benchmark.py: error: {error}", file=sys.stderr)
        return 1
    finally:
        torch.set_num_threads(threads)
    return 0
