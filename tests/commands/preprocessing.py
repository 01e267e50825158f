"""fairseq-preprocess in a fork: for each corpus of a test, a new process would spend seconds on importing fairseq."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from fairseq_stack_preprocess.text import binarise, child


def install() -> None:
    """Let ``fairseq-stack prepare`` binarise in forks of this process."""
    binarise.run_preprocess = run_in_a_fork


def run_in_a_fork(arguments: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """What :func:`binarise.run_preprocess` does, with the modules that this process has imported."""
    import fairseq_cli.preprocess  # noqa: F401  (once for all forks)

    parent = os.getpid()
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        pid = os.fork()
        if pid == 0:
            os.chdir(folder)
            os._exit(_run(["child.py", str(parent), *arguments], output, errors))
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read().decode(errors="backslashreplace"))
    return subprocess.CompletedProcess(list(arguments), code, *texts)


def _run(argv: list[str], output: BinaryIO, errors: BinaryIO) -> int:
    """Run ``child.py`` in this process, and return its exit code."""
    os.dup2(output.fileno(), 1)
    os.dup2(errors.fileno(), 2)
    sys.argv, sys.stdout, sys.stderr = argv, os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
    code = 1
    try:
        child.main()
        code = 0
    except SystemExit as exit:
        code = exit.code if isinstance(exit.code, int) else int(exit.code is not None)
    except BaseException:
        traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return code
