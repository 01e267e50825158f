"""Runs commands as a shell would, and ``-c PROGRAM``: each one in a fork of a process that has imported fairseq.

``python -m tests.commands.server SOCKET`` answers the requests of ``tests/commands/client.py`` until it is killed. A
second process, which has imported the plugin as well, answers those for commands that load it at once anyway. A
child leaves this module as a program leaves ``main``, so that uncaught exceptions and exit handlers are Python's own
business; only the modules are left to the operating system, since to delete them takes longer than most commands.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

from tests.commands import client

SECONDS_AT_MOST = 3600
"""After so long a command counts as hanging, and SIGALRM ends it."""

COMMANDS = {
    "fairseq-preprocess": ("fairseq_cli.preprocess", "cli_main"),
    "fairseq-train": ("fairseq_cli.train", "cli_main"),
    "fairseq-generate": ("fairseq_cli.generate", "cli_main"),
    "fairseq-interactive": ("fairseq_cli.interactive", "cli_main"),
    "fairseq-validate": ("fairseq_cli.validate", "cli_main"),
    "fairseq-eval-lm": ("fairseq_cli.eval_lm", "cli_main"),
    "fairseq-hydra-train": ("fairseq_cli.hydra_train", "cli_main"),
    "fairseq-stack": ("fairseq_stack.cli", "main"),
    "snakemake": ("snakemake.cli", "main"),
}
"""The module and the function of each console script."""

Request = dict[str, Any]


def serve(path: str) -> Request:
    """Answer requests for ever; in a child, return the request to run."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the keepers
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{path}.new")
        listening.listen(32)
        os.rename(f"{path}.new", path)  # who sees the socket can connect
        while True:
            connection, _ = listening.accept()
            if os.fork() == 0:
                break
            connection.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    return _keep(connection)


def _keep(connection: socket.socket) -> Request:
    """Tell the client the number of the process that runs its command, and in the end the exit code."""
    message, streams, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    while not message.endswith(b"\n"):
        message += connection.recv(1 << 20)
    child = os.fork()
    if child == 0:
        connection.close()
        request: Request = json.loads(message)
        _take_over(request, streams)
        return request
    for stream in streams:
        os.close(stream)
    connection.sendall(f"{child}\n".encode())
    _, status = os.waitpid(child, 0)
    connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _take_over(request: Request, streams: list[int]) -> None:
    """Give this process the client's streams, folder and environment."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", closefd=False, buffering=1, errors="backslashreplace")
    signal.alarm(SECONDS_AT_MOST)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])


def main_of(command: str) -> Callable[[], Any]:
    """What the console script of this name calls."""
    module, function = COMMANDS[os.path.basename(command)]
    if module == "fairseq_stack.cli":
        importlib.import_module("tests.commands.preprocessing").install()
    main: Callable[[], Any] = getattr(importlib.import_module(module), function)
    return main


def end_at_once(code: list[int]) -> None:
    """Skip the end of the interpreter, if the exit code is known and all output can be written."""
    if code:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code[0])


def run(command: list[str]) -> None:
    """Run a command in this process, as its console script or ``python`` does."""
    if command[0] != "-c":
        sys.exit(main_of(command[0])())
    exec(compile(command.pop(1), "<string>", "exec"), {"__name__": "__main__"})


def import_plugin() -> None:
    """Import all of ``fairseq_stack``, and what it draws with."""
    for name in ("cli", "cli.checkpoint", "cli.inspect", "cli.prepare", "hub.interface", "tasks"):
        importlib.import_module(f"fairseq_stack.{name}")
    for name in ("matplotlib.figure", "snakemake.cli"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


if __name__ == "__main__":
    CODE: list[int] = []
    atexit.register(end_at_once, CODE)  # before all others, so that it is called after them
    modules = [module for module, _ in COMMANDS.values() if module.startswith("fairseq_cli.")]
    for name in ("torch._dynamo", "fairseq.tasks", "sacrebleu", "sentencepiece", *modules):
        importlib.import_module(name)
    composing = importlib.import_module("tests.commands.composing")
    composing.install()
    composing.parse_defaults()
    SOCKET, PARENT = sys.argv[1], os.getpid()
    if os.fork() == 0:
        import_plugin()
        importlib.import_module("fairseq_stack_preprocess.text.child").end_with(PARENT)
        SOCKET = client.with_plugin(SOCKET)
    gc.collect()
    gc.freeze()  # a child that ends need not visit, and so copy, all that was imported
    REQUEST = serve(SOCKET)
    sys.argv = REQUEST["command"]
    if sys.argv[0] == "snakemake":
        logging.getLogger().handlers.clear()  # which fairseq has added
    elif "fairseq_stack" in sys.modules:
        logging.getLogger().setLevel(logging.DEBUG)  # as the import of fairseq left it
        importlib.import_module("fairseq_stack.compat").apply()  # again, now that it can see which command this is
    try:
        run(sys.argv)
        CODE.append(0)
    except SystemExit as ending:
        CODE += [ending.code or 0] if isinstance(ending.code, int | None) else []
        raise
