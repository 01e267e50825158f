"""A server of commands, for tests."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.commands import client
from tests.commands.server import COMMANDS

REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Ending:
    """How a command ended."""

    code: int
    printed: str
    errors: str

    @property
    def last_line(self) -> str:
        """The last line of standard error."""
        return (self.errors.splitlines() or [""])[-1]


class Server:
    """A process of ``tests.commands.server``.

    Attributes:
        folder: the folder of its files, with a short path, as sockets need.
        programs: a folder of programs with the names of the commands, to be put first in PATH.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.folder = Path(self._folder.name)
        self.programs = self.folder / "bin"
        self._socket = self.folder / "socket"
        path = os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "preprocess")])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.commands.server", str(self._socket)],
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        )
        self._write_programs()

    def _write_programs(self) -> None:
        self.programs.mkdir()
        start = shlex.join([sys.executable, "-IS", client.__file__, str(self._socket)])
        for command in COMMANDS:
            program = self.programs / command
            program.write_text(f'#!/bin/sh\nexec {start} {command} "$@"\n', encoding="utf-8")
            program.chmod(0o755)

    def wait(self) -> None:
        """Wait until it answers requests."""
        sockets = [self._socket, Path(client.with_plugin(str(self._socket)))]
        while not all(socket.exists() for socket in sockets):
            if self._process.poll() is not None:
                raise RuntimeError(f"the server of commands ended with exit code {self._process.returncode}")
            time.sleep(0.05)

    def run(self, command: list[str], folder: Path, stdin: str | bytes = "", **environment: str) -> Ending:
        """Run a command in ``folder`` and wait for its end."""
        self.wait()
        paths = {name: self.folder / name for name in ("stdin", "stdout", "stderr")}
        paths["stdin"].write_bytes(stdin.encode() if isinstance(stdin, str) else stdin)
        with paths["stdin"].open("rb") as given, paths["stdout"].open("wb") as out, paths["stderr"].open("wb") as err:
            streams = [stream.fileno() for stream in (given, out, err)]
            code = client.run(str(self._socket), command, str(folder), {**os.environ, **environment}, streams)
        return Ending(code, *(paths[name].read_text(errors="replace") for name in ("stdout", "stderr")))

    def run_program(self, program: str, folder: Path, *arguments: str, **environment: str) -> Ending:
        """Run ``python -c PROGRAM ARGUMENTS``; fairseq is imported already, and ``fairseq_stack`` is not."""
        return self.run(["-c", program, *arguments], folder, **environment)

    def environment(self, **variables: str) -> dict[str, str]:
        """Environment variables with which the commands in a shell are those of this server."""
        self.wait()
        path = os.pathsep.join([str(self.programs), str(Path(sys.executable).parent), os.environ["PATH"]])
        return {**os.environ, "OMP_NUM_THREADS": "1", **variables, "PATH": path}

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()
