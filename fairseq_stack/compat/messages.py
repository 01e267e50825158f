"""A command that cannot continue ends with one line that says what to do, instead of a traceback."""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from fairseq_stack.compat.replacing import sets
from fairseq_stack.errors import INTERRUPTED, USER_ERROR, UserError

FULL_TRACEBACK = "FAIRSEQ_STACK_TRACEBACK"
"""The environment variable that restores the traceback."""

_OURS = f"{UserError.__module__}.{UserError.__qualname__}: "

ExceptHook = Callable[[type[BaseException], BaseException, TracebackType | None], Any]


_FOLDER = "expected a folder that fairseq-preprocess has written"

KNOWN = {
    "AssertionError: Must specify batch size": "the batch size is missing: give --max-tokens (tokens in a batch) or "
    "--batch-size (sentences in a batch)",
    "KeyError: None": "the task is missing: give --task, such as --task translation or --task language_modeling",
    # omegaconf: the options of language models refer to one of their task
    "InterpolationKeyError: Interpolation key 'task.tokens_per_sample' not found": "this is the architecture of a "
    "language model: give --task language_modeling",
    "AssertionError: (Optimizer|Criterion) does not match": "the checkpoint that training continues from was trained "
    "with another --optimizer, --criterion or precision; use the same options, give --reset-optimizer, or choose "
    "another --save-dir and no --restore-file",
    "ValueError: loaded state dict has a different number of parameter groups": "the checkpoint that training "
    "continues from was trained with another --stack-lr-scale; use the same scale, give --reset-optimizer, or choose "
    "another --save-dir and no --restore-file",
    r"ValueError: Unsupported optimizer: (\w+)": r"--memory-efficient-fp16: \1 does not work with it; leave it out, or "
    "use --optimizer adam",
    r"ValueError: (--share-all-embeddings requires .*)": r"\1",
    "Exception: Could not infer language pair": "the languages cannot be inferred from the file names: give "
    "--source-lang and --target-lang",
    r"FileNotFoundError: \[Errno 2\] No such file or directory: '(.*dict\.?[^/]*\.txt)'": rf"\1 is missing: {_FOLDER}, "
    "with its dictionaries; a language model of --lm-path needs its dict.txt there",
    r"FileNotFoundError: \[Errno 2\] No such file or directory: '(.*)'": rf"\1 does not exist: {_FOLDER}",
    "OSError: Model file not found: (.*:.*)": r"--path: \1 does not exist (only fairseq-generate and "
    "fairseq-interactive take several checkpoints)",
    "OSError: Model file not found: (.*)": r"--path: \1 does not exist",
    "AssertionError: (--sampling requires --nbest to be equal to --beam)": r"\1",
    "AssertionError: (--sampling-top[kp] requires --sampling)": r"\1",
    "AssertionError: (--replace-unk requires a raw text dataset)": r"\1",
    "ValueError: DiverseBeamSearch requires --beam to be divisible by the number of groups": "--diverse-beam-groups: "
    "expected a divisor of --beam",
    r"ValueError: (--finetune-from-model (.* does not exist|can not be set together with .*|and --restore-file "
    r"\(non-default value\) can not be specified together))": r"\1",
    "TypeError: 'NoneType' object is not iterable": "--constraints: only fairseq-interactive reads constraints",
    r"FileNotFoundError: Dataset not found: (\S+) \((.*?)(?:/\1)?\)$": r"\2 has no split \1",
    "ValueError: (buffer is smaller than requested size|offset must be non-negative and no greater than buffer)": (
        "a file of the binarised data (.idx or .bin) ends early: binarise the data again"
    ),
    "AssertionError: Index file doesn't match expected format": "a file of the binarised data (.idx) is damaged: "
    "binarise the data again",
    "AssertionError: embed_dim must be divisible by num_heads": "the size of a model (--encoder-embed-dim, "
    "--decoder-embed-dim) must be a multiple of its attention heads (--encoder-attention-heads, "
    "--decoder-attention-heads)",
    "KeyError: '(steps|history)'": "--print-step, --retain-iter-history: the model does not translate in iterations; "
    "leave the option out",
    "KeyError: '(.*)'": r"--best-checkpoint-metric \1: the validation has no such metric; its line in the log has "
    "those that there are",
}
"""Errors of fairseq that users meet, by how their last line begins, and what to do, with the groups of the first."""

RAISED_BY = {
    "KeyError: None": {"parse_args_and_arch"},
    r"FileNotFoundError: \[Errno 2\] No such file or directory: '(.*)'": {"ls"},  # fairseq looks for languages there
    "TypeError: 'NoneType' object is not iterable": {"init_constraints"},
    "KeyError: '(steps|history)'": {"_main"},
    "KeyError: '(.*)'": {"validate", "get_valid_stats"},
}
"""The functions that raise those errors of which the last line is not enough to know them."""


@sets("sys.excepthook")
def end_commands_with_a_message() -> None:
    """End fairseq's commands with one line and exit code 2 after a user error.

    Such mistakes are the errors of this plugin (:class:`UserError`) and the fairseq errors in :data:`KNOWN`; all other
    errors keep their traceback. In a program that only imports the plugin, ``sys.excepthook`` stays as it is. The
    environment variable ``FAIRSEQ_STACK_TRACEBACK`` shows all tracebacks. It is an excepthook, since fairseq's
    ``main`` is already running when the plugin is imported.

    Unnecessary with a fairseq that distinguishes user errors from its own.
    """
    if command() is not None and not isinstance(sys.excepthook, _EndWithMessage):
        sys.excepthook = _EndWithMessage(sys.excepthook)


def command() -> str | None:
    """The name of the fairseq command that this process runs, such as ``fairseq-train``, or None."""
    program = Path(sys.argv[0]) if sys.argv else Path()
    if program.name.startswith("fairseq-") and program.name != "fairseq-stack":
        return program.name
    if program.parent.name == "fairseq_cli":  # python -m fairseq_cli.train
        return f"fairseq-{program.stem.replace('_', '-')}"
    return None


def message_of(error: BaseException) -> str | None:
    """The line that says what to do about ``error``, or None if it is not a known mistake of the user."""
    # torch passes on errors of other processes with their traceback in the message.
    lines = str(error).strip().splitlines() or [""]
    if lines[-1].startswith(_OURS):
        return lines[-1].removeprefix(_OURS)
    if isinstance(error, UserError):
        return " ".join(map(str.strip, lines))
    functions = {frame.name for frame in traceback.extract_tb(error.__traceback__)[-1:]}
    for pattern, advice in KNOWN.items():
        match = re.match(pattern, f"{type(error).__name__}: {error}") or re.match(pattern, lines[-1])
        if match and (pattern not in RAISED_BY or functions & RAISED_BY[pattern]):
            return match.expand(advice)
    return None


class _EndWithMessage:
    """``sys.excepthook`` for fairseq's commands."""

    def __init__(self, original: ExceptHook) -> None:
        self._original = original

    def __call__(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if kind is KeyboardInterrupt:
            print(f"{command()}: interrupted", file=sys.stderr)
            raise SystemExit(INTERRUPTED)
        message = None if os.environ.get(FULL_TRACEBACK) else message_of(error)
        if message is None:
            self._original(kind, error, trace)
            return
        sys.stdout.flush()
        print(f"{command()}: error: {message}", file=sys.stderr)
        raise SystemExit(USER_ERROR)


@sets("hydra._internal.utils.CompactHydraException")
def end_hydra_with_a_message() -> None:
    """End ``fairseq-hydra-train`` with one line, as after one of hydra's own errors.

    hydra catches every exception of the program that it runs and prints a traceback, so no exception reaches
    ``sys.excepthook``.

    Unnecessary with a fairseq that distinguishes user errors from its own.
    """
    utils: Any = sys.modules.get("hydra._internal.utils")
    if utils is not None and isinstance(utils.CompactHydraException, type):
        utils.CompactHydraException = (utils.CompactHydraException, UserError)
