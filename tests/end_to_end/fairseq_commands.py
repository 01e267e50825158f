"""Runs fairseq's commands in this process, as the command line would, on small models."""

from __future__ import annotations

import contextlib
import csv
import io
import logging
import re
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
import fairseq_stack.tasks
from fairseq_stack.hub.interface import LanguageModelHub, load

USER_DIR = str(Path(fairseq_stack.__file__).parent)

ENCODER = "sdpa,sup-4,nd-2-2-3"
DECODER = "nd-2-2-3,sdpa,sup-4"
SIZES = [
    *("--encoder-embed-dim", 16, "--encoder-ffn-embed-dim", 16, "--encoder-attention-heads", 2),
    *("--decoder-embed-dim", 16, "--decoder-ffn-embed-dim", 16, "--decoder-attention-heads", 2),
]
BARE_TRANSLATION = ["--task", "translation", "--arch", "stack_transformer", *SIZES]
TRANSLATION = [*BARE_TRANSLATION, "--stack-encoder-layers", ENCODER, "--stack-decoder-layers", DECODER]
SENTENCES = ["--sample-break-mode", "eos", "--tokens-per-sample", 50]
BARE_LANGUAGE_MODEL = [
    *("--task", "language_modeling", "--arch", "stack_transformer_lm", *SIZES[6:], *SENTENCES),
]
STOCK_LANGUAGE_MODEL = ["--task", "language_modeling", "--arch", "transformer_lm", *BARE_LANGUAGE_MODEL[4:]]
BARE_RECURRENT = [
    *("--task", "language_modeling", "--arch", "stack_lstm_lm", "--decoder-hidden-size", 8, *SENTENCES),
]
LANGUAGE_MODEL = [*BARE_LANGUAGE_MODEL, "--stack-layers", DECODER]
PUSHDOWN = [
    *("--task", "pushdown_language_modeling", "--tokens-per-sample", 50, "--arch", "pushdown_transformer_lm"),
    *("--compact-vocab", "--compact-vocab-unk", "--stack-layers", "pushdown,sup-4,sdpa", *SIZES[6:]),
    *("--criterion", "pushdown_cross_entropy"),
]
TRAINING = [
    *("--optimizer", "adam", "--lr", 0.01, "--batch-size", 10, "--max-epoch", 2),
    *("--no-epoch-checkpoints", "--no-progress-bar", "--num-workers", 0, "--cpu"),
]
GENERATION = ["--beam", 4, "--max-len-b", 10, "--batch-size", 4, "--num-workers", 0, "--cpu"]
SMOOTHED_COMPACT = [
    *("--compact-vocab", "--criterion", "label_smoothed_cross_entropy", "--label-smoothing", 0.1),
]

_MAINS: dict[str, Callable[[], None]] = {
    "preprocess": preprocess.cli_main,
    "train": train.cli_main,
    "hydra-train": hydra_train.cli_main,
    "generate": generate.cli_main,
    "interactive": interactive.cli_main,
    "validate": validate.cli_main,
    "eval-lm": eval_lm.cli_main,
}
_WITHOUT_USER_DIR = ("preprocess", "hydra-train")


@dataclass
class Output:
    """What a command said."""

    printed: str = ""
    log: list[str] = field(default_factory=list)

    def hypotheses(self) -> dict[int, str]:
        """The best output for each sentence, by the number of the sentence."""
        outputs: dict[int, str] = {}
        for line in self.printed.splitlines():
            if line.startswith("H-"):
                name, _, text = line.split("\t")
                outputs.setdefault(int(name[2:]), text)
        return outputs

    def training_losses(self) -> list[float]:
        """The mean loss of each epoch, to base 2."""
        return self._numbers(r"epoch \d+ \| loss (\S+)")

    def validation_losses(self) -> list[float]:
        """The loss of each validation, to base 2; of fairseq-validate and fairseq-eval-lm the only one."""
        return self._numbers(r"subset \| loss (\S+)|Loss \(base 2\): ([^,]+)")

    def _numbers(self, pattern: str) -> list[float]:
        text = "\n".join([*self.log, self.printed])
        return [float(match[match.lastindex or 0]) for match in re.finditer(pattern, text)]


def tab_separated(text: str) -> list[list[str]]:
    """The cells of the rows of a table."""
    return [line.split("\t") for line in text.splitlines()]


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def hub_of(checkpoint: Path, *data: Path) -> LanguageModelHub:
    """A trained language model in Python."""
    loaded = load(checkpoint, *data)
    assert isinstance(loaded, LanguageModelHub)
    return loaded


def run(command: str, *arguments: Any, stdin: str = "") -> Output:
    """Run ``fairseq-COMMAND ARGUMENTS`` with this plugin and return what it said; exceptions pass through."""
    output = Output()
    user_dir = [] if command in _WITHOUT_USER_DIR else ["--user-dir", USER_DIR]
    argv = [f"fairseq-{command}", *map(str, arguments), *user_dir]
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
        for name in ("best", "num_runs"):
            patch.delattr(function, name, raising=False)
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
