"""Runs fairseq's commands in this process, as the command line would."""

from __future__ import annotations

import contextlib
import io
import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fairseq import checkpoint_utils
from fairseq_cli import eval_lm, generate, hydra_train, interactive, preprocess, train, validate
from hydra.core.global_hydra import GlobalHydra

import fairseq_stack
import fairseq_stack.models
import fairseq_stack.tasks  # --user-dir registers nothing once its package has been imported

USER_DIR = str(Path(fairseq_stack.__file__).parent)

_MAINS: dict[str, Callable[[], None]] = {
    "preprocess": preprocess.cli_main,
    "train": train.cli_main,
    "hydra-train": hydra_train.cli_main,
    "generate": generate.cli_main,
    "interactive": interactive.cli_main,
    "validate": validate.cli_main,
    "eval-lm": eval_lm.cli_main,
}


@dataclass
class Output:
    """What a command said."""

    printed: str = ""
    log: list[str] = field(default_factory=list)

    def hypotheses(self) -> dict[int, str]:
        """The best output for each sentence, by the number of the sentence."""
        found: dict[int, str] = {}
        for line in self.printed.splitlines():
            if line.startswith("H-"):
                name, _, text = line.split("\t")
                found.setdefault(int(name[2:]), text)
        return found


def run(command: str, *arguments: Any, stdin: str = "") -> Output:
    """Run ``fairseq-COMMAND ARGUMENTS`` with this plugin and return what it said; exceptions pass through."""
    output = Output()
    argv = [f"fairseq-{command}", *map(str, arguments)]
    if command not in ("preprocess", "hydra-train"):
        argv += ["--user-dir", USER_DIR]
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, _logged(output.log), contextlib.redirect_stdout(printed):
        patch.setattr(sys, "argv", argv)
        patch.setattr(sys, "stdin", io.StringIO(stdin))
        _forget_earlier_runs(patch)
        try:
            _MAINS[command]()
        finally:
            output.printed = printed.getvalue()
    return output


def _forget_earlier_runs(patch: pytest.MonkeyPatch) -> None:
    """fairseq and hydra keep these between runs in one process."""
    for function in (checkpoint_utils.save_checkpoint, train.should_stop_early):
        patch.delattr(function, "best", raising=False)
        patch.delattr(function, "num_runs", raising=False)
    GlobalHydra.instance().clear()


@contextlib.contextmanager
def _logged(messages: list[str]) -> Iterator[None]:
    """Collect what loggers say within the block."""

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers[:] = [Collector()]
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
