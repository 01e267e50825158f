"""Compare the speed and the memory of two checkouts: ``python scripts/compare.py OTHER``, from the newer one.

Each checkout has processes of its own, with the kernels that were built there. The two run every case in turn, so that
whatever else the machine does hits both. The ratio is the median over turns of this checkout's processor time divided
by the other's; the minimum times of both are given as well. Benchmarks that run one after the other differ by more than
commits do. Then come the ratio and both amounts of memory that a run needs at its peak.

The cases are this checkout's (:mod:`benchmark.compared`), and call what users may call. What fails in a checkout, since
it lacks something, is not compared.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
MOST = 1.05  # a ratio above this is marked
LEAST_MB = 0.5  # a smaller difference in memory is noise
LEAST_OF = 5  # memory is the least of so many runs
PLAIN_MALLOC = {"MALLOC_MMAP_THRESHOLD_": "16384", "MALLOC_TRIM_THRESHOLD_": "0"}  # gives back what is free at once
MEASURES = "ms", "MB"
PYTORCH = "pytorch "  # begins the names of cases that run without the compiled kernels


class Worker:
    """A process of a checkout that measures cases, one after the other; it begins when it is needed.

    Args:
        checkout: its folder.
        measure: one of MEASURES.
        native: whether there are compiled kernels.
    """

    def __init__(self, checkout: Path, measure: str, native: bool) -> None:
        self._checkout, self._measure, self._native = checkout, measure, native
        self._process: subprocess.Popen[str] | None = None

    def names(self) -> list[str]:
        """The names of all cases."""
        return list(self._ask(""))

    def measure(self, name: str) -> float:
        """A measurement of a case.

        Raises:
            LookupError: the checkout cannot run it.
        """
        answer = self._ask(name)
        if isinstance(answer, str):
            raise LookupError(answer)
        return float(answer)

    def _ask(self, line: str) -> Any:
        self._process = self._process or self._start()
        assert self._process.stdin is not None and self._process.stdout is not None
        print(line, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{line}: the process in {self._checkout} ended")
        return json.loads(answer)

    def _start(self) -> subprocess.Popen[str]:
        path = os.pathsep.join(map(str, (self._checkout, HERE / "scripts")))
        environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
        environment |= {} if self._native else {"FAIRSEQ_STACK_NATIVE": "0"}
        environment |= PLAIN_MALLOC if self._measure == "MB" else {}
        return subprocess.Popen(
            [sys.executable, "-m", "benchmark.compared", self._measure], env=environment, cwd=self._checkout,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def end(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.communicate()


Pair = tuple[float, float]
"""A measurement of this checkout and one of the other."""


def measure_in_turn(workers: Sequence[Worker], name: str, rounds: int) -> list[Pair]:
    """The measurements of each round, in which the two go first in turn."""
    pairs = []
    for turn in range(rounds):
        order = workers if turn % 2 else workers[::-1]
        figures = {worker: worker.measure(name) for worker in order}
        pairs.append((figures[workers[0]], figures[workers[1]]))
    return pairs


def least(pairs: Sequence[Pair]) -> Pair:
    """The minimum of both."""
    return min(here for here, _ in pairs), min(there for _, there in pairs)


def rows(other: Path, parts: Sequence[str], rounds: int) -> Iterator[tuple[str, list[str]]]:
    """For each case whose name has one of ``parts``: its row, and which of MARKS it has."""
    pairs = {
        (measure, native): [Worker(checkout, measure, native) for checkout in (HERE, other)]
        for measure in MEASURES
        for native in (True, False)
    }
    for name in pairs["ms", True][0].names():
        if not any(part in name for part in parts):
            continue
        native = not name.startswith(PYTORCH)
        try:
            times = measure_in_turn(pairs["ms", native], name, rounds)
            memory = least(measure_in_turn(pairs["MB", native], name, LEAST_OF))
        except LookupError as error:
            yield f"{name:60} {error}", ["not compared"]
            continue
        ratio = statistics.median(here / there for here, there in times)
        larger = max(memory[0], LEAST_MB) / max(memory[1], LEAST_MB)
        marks = ["slower"] * (ratio > MOST) + ["larger"] * (larger > MOST and memory[0] - memory[1] > LEAST_MB)
        figures = FORMAT.format(ratio, *least(times), larger, *memory)
        yield f"{name:60} {figures} {' '.join(marks)}".rstrip(), marks
    for pair in pairs.values():
        for worker in pair:
            worker.end()


MARKS = "slower", "larger", "not compared"
FORMAT = "{:6.3f} {:9.3f} {:9.3f} {:6.3f} {:8.2f} {:8.2f}"
HEADING = f"{'case':60} {'ratio':>6} {'here ms':>9} {'other ms':>9} {'ratio':>6} {'here MB':>8} {'other MB':>8}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0].split(":")[0])
    parser.add_argument("other", type=Path, help="a checkout of another commit, with its kernels built")
    parser.add_argument("--rounds", type=int, default=21, metavar="N", help="runs of each case (default: 21)")
    parser.add_argument(
        "--only", nargs="+", default=[""], metavar="TEXT", help="only cases whose name contains one of these"
    )
    options = parser.parse_args()
    if not (options.other / "fairseq_stack").is_dir():
        parser.error(f"OTHER: expected a checkout of this project, got {options.other}")
    print(HEADING)
    number, marked = 0, list[str]()
    for row, marks in rows(options.other.resolve(), options.only, options.rounds):
        print(row, flush=True)
        number, marked = number + 1, [*marked, *marks]
    counts = ", ".join(f"{marked.count(mark)} {mark}" for mark in MARKS)
    print(f"{number} cases: {counts} (more than {MOST - 1:.0%})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
