"""Functions of fairseq are wrapped once, however often the shims are applied."""

from __future__ import annotations

from types import SimpleNamespace

from fairseq import checkpoint_utils
from fairseq.trainer import Trainer

from fairseq_stack import compat
from fairseq_stack.compat.wrapping import Function, wrap_once


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
    before = dict(vars(Trainer)), dict(vars(checkpoint_utils))
    compat.apply()
    assert (dict(vars(Trainer)), dict(vars(checkpoint_utils))) == before
