"""Progress of long work: a bar on a terminal, plain lines in a log and without tqdm."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

SECONDS_BETWEEN_LINES = 10.0


def say(message: str) -> None:
    """One line of progress on standard error."""
    print(message, file=sys.stderr, flush=True)


def progress(items: Iterable[T], *, label: str, total: int | None, unit: str = "line") -> Iterator[T]:
    """Yield ``items`` and show on standard error how many of ``total`` (None: unknown) are done.

    ``unit`` is the name of an item, printed next to the bar.
    """
    if sys.stderr.isatty() and importlib.util.find_spec("tqdm") is not None:
        from tqdm import tqdm

        yield from tqdm(items, desc=label, total=total, unit=unit)
    else:
        yield from _with_lines(items, label, total)


def _with_lines(items: Iterable[T], label: str, total: int | None) -> Iterator[T]:
    done = 0
    of_total = "" if total is None else f" of {total}"
    last = time.monotonic()
    for done, item in enumerate(items, start=1):
        yield item
        if time.monotonic() - last >= SECONDS_BETWEEN_LINES:
            say(f"{label}: {done}{of_total}")
            last = time.monotonic()
    say(f"{label}: {done}{of_total}, done")
