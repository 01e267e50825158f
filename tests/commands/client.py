"""Asks a ``tests.commands.server`` to run a command.

``python client.py SOCKET COMMAND ...`` stands for the command, and needs nothing but Python. It passes its own streams,
folder and environment on, forwards the signals that would end it, and ends as the command does.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence


def with_plugin(path: str) -> str:
    """The socket of the process that has imported the plugin."""
    return f"{path}.plugin"


def run(
    path: str,
    command: Sequence[str],
    folder: str,
    environment: Mapping[str, str],
    streams: Sequence[int],
    started: Callable[[int], object] = lambda process: None,
) -> int:
    """Run a command and wait for its end.

    Args:
        path: the server's socket.
        command: the command's name and arguments.
        folder: its current folder.
        environment: its environment variables.
        streams: file descriptors of its standard input, output and error.
        started: called with the number of the process that runs the command.

    Returns:
        The exit code, or minus the number of the signal that ended the command.
    """
    loads_plugin = command[0] != "-c" and (
        command[0].endswith(("fairseq-stack", "snakemake")) or "--user-dir" in command
    )
    request = {"command": list(command), "folder": folder, "environment": dict(environment)}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(with_plugin(path) if loads_plugin else path)
        message = f"{json.dumps(request)}\n".encode()
        sent = socket.send_fds(connection, [message], list(streams))
        connection.sendall(message[sent:])
        with connection.makefile("r") as answers:
            started(int(answers.readline()))
            return int(answers.readline())


def _forward_signals(process: int) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda received, frame: os.kill(process, received))


if __name__ == "__main__":
    CODE = run(sys.argv[1], sys.argv[2:], os.getcwd(), os.environ, (0, 1, 2), _forward_signals)
    if CODE < 0:
        signal.signal(-CODE, signal.SIG_DFL)
        os.kill(os.getpid(), -CODE)
    sys.exit(CODE)
