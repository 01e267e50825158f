"""Errors that a user can fix, with a message that says how."""

from __future__ import annotations


class UserError(ValueError):
    """A mistake in what a command was given (options, data, a checkpoint), with one line that says what to do.

    fairseq's commands end with this line and exit code 2 (:mod:`fairseq_stack.compat`). For callers from Python it is a
    ValueError like any other.
    """
