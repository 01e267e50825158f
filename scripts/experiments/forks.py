"""Run commands of fairseq and fairseq-stack one after the other, each in a fork of this process.

python scripts/experiments/forks.py LOG=COMMAND ...

COMMAND is a command line without redirections; what it prints is written to the file LOG. Importing fairseq takes
longer than training a small model: here it is imported once. A command that fails does not stop the others, but the
exit code is then 1.
"""

from __future__ import annotations

import gc
import importlib
import os
import shlex
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

IMPORTED_LATE = ("torch._dynamo", "fairseq.tasks", "fairseq_stack.tasks", "sacrebleu")
"""Modules that training and scoring import when they need them."""


def mains(names: set[str]) -> dict[str, Callable[[], Any]]:
    """What the console scripts of these names call, with all that they import."""
    programs = {name: entry_points(group="console_scripts")[name].load() for name in sorted(names)}
    if "fairseq-train" in names:
        for module in IMPORTED_LATE:
            importlib.import_module(module)
    gc.collect()
    gc.freeze()  # a fork that ends need not visit, and so copy, all that was imported
    return programs


def start(main: Callable[[], Any], words: list[str], log: Path) -> int:
    """Run a command in a fork, and return its exit code. The fork leaves this program as the command would."""
    sys.stdout.flush()
    child = os.fork()
    if child != 0:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with log.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.argv = words
    if "fairseq_stack.compat" in sys.modules:
        sys.modules["fairseq_stack.compat"].apply()  # again, now that it can see which command this is
    sys.exit(main())


def run(arguments: list[str]) -> int:
    """Run the commands, and return the exit code."""
    commands = [(Path(log), shlex.split(line)) for log, _, line in (argument.partition("=") for argument in arguments)]
    programs = mains({words[0] for _, words in commands})
    failed = False
    for log, words in commands:
        log.parent.mkdir(parents=True, exist_ok=True)
        code = start(programs[words[0]], words, log)
        if code != 0:
            failed = True
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:]
            print("\n".join([f"{shlex.join(words)} ended with exit code {code}; {log} ends:", *lines]), file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
