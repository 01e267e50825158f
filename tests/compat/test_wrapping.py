"""Functions of fairseq are wrapped once, however often the shims are applied."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

from fairseq import checkpoint_utils, models
from fairseq.data import data_utils
from fairseq.file_io import PathManager
from fairseq.ngram_repeat_block import NGramRepeatBlock
from fairseq.optim.lr_scheduler.reduce_lr_on_plateau import ReduceLROnPlateauLRSchedule
from fairseq.search import DiverseBeamSearch
from fairseq.sequence_generator import SequenceGenerator
from fairseq.tasks import FairseqTask
from fairseq.tasks.language_modeling import LanguageModelingTask
from fairseq.trainer import Trainer

from fairseq_stack import compat
from fairseq_stack.compat.wrapping import Function, wrap_once

OWNERS = (
    *(checkpoint_utils, data_utils, models, DiverseBeamSearch, FairseqTask, LanguageModelingTask, NGramRepeatBlock),
    *(PathManager, ReduceLROnPlateauLRSchedule, SequenceGenerator, Trainer),
)
"""The modules and classes that functions are wrapped in."""


def contents(owner: Any) -> dict[str, Any]:
    return {name: getattr(owner, name) for name in vars(owner)}


def doubling(function: Function) -> Function:
    return lambda: 2 * function()


def adding(function: Function) -> Function:
    return lambda: function() + 1


def test_each_wrapper_once() -> None:
    owner = SimpleNamespace(number=lambda: 5)
    for _ in range(2):
        wrap_once(owner, "number", doubling)
        wrap_once(owner, "number", adding)
    assert owner.number() == 11


def test_applying_twice() -> None:
    compat.apply()
    before = [contents(owner) for owner in OWNERS]
    hooks = sys.excepthook, sys.unraisablehook
    compat.apply()
    assert [contents(owner) for owner in OWNERS] == before
    assert (sys.excepthook, sys.unraisablehook) == hooks
