"""The exception for files that cannot be analysed."""

from __future__ import annotations


class AnalysisError(ValueError):
    """A file lacks what it should hold; the message names it in one line for the user."""
