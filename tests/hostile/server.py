"""Runs commands as a shell would, in a tenth of the time: each one in a fork of a process that has imported fairseq.

``python -m tests.hostile.server`` reads requests from standard input, one JSON object a line, and answers each with the
command's exit code on a line of its own. A child leaves this module as a program leaves ``main``, so that uncaught
exceptions and exit handlers are Python's own business.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

SECONDS_AT_MOST = 300
"""After so long a command counts as hanging, and SIGALRM ends it."""

_MODULES = {
    "fairseq-preprocess": "fairseq_cli.preprocess",
    "fairseq-train": "fairseq_cli.train",
    "fairseq-generate": "fairseq_cli.generate",
    "fairseq-interactive": "fairseq_cli.interactive",
    "fairseq-validate": "fairseq_cli.validate",
    "fairseq-eval-lm": "fairseq_cli.eval_lm",
    "fairseq-hydra-train": "fairseq_cli.hydra_train",
}


def serve() -> dict[str, Any]:
    """Answer requests until there are no more; in a child, return the request to run."""
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        child = os.fork()
        if child == 0:
            answers.close()
            _redirect(request)
            return request
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), file=answers, flush=True)
    os._exit(0)


def _redirect(request: dict[str, Any]) -> None:
    writing = os.O_WRONLY | os.O_CREAT
    for number, (name, flags) in enumerate({"stdin": os.O_RDONLY, "stdout": writing, "stderr": writing}.items()):
        os.dup2(os.open(request[name], flags, 0o666), number)
    sys.stdin = os.fdopen(0, closefd=False)  # that of the parent has read ahead
    signal.alarm(SECONDS_AT_MOST)
    os.chdir(request["folder"])
    os.environ.update(request["environment"])


def main_of(command: str) -> Callable[[], Any]:
    """What the console script of this name calls."""
    if command == "fairseq-stack":
        return importlib.import_module("fairseq_stack.cli").main
    return importlib.import_module(_MODULES[command]).cli_main


if __name__ == "__main__":
    for module in ("torch._dynamo", "fairseq.tasks", *_MODULES.values(), "sacrebleu"):
        importlib.import_module(module)
    REQUEST = serve()
    sys.argv = REQUEST["command"]
    sys.exit(main_of(sys.argv[0])())
