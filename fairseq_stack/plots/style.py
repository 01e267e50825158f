"""How all figures look."""

from __future__ import annotations

import importlib.util

from fairseq_stack.errors import UserError

SETTINGS = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.markersize": 4,
    "svg.hashsalt": "fairseq_stack",
}


def require_matplotlib() -> None:
    """Raise UserError if matplotlib is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        raise UserError("the picture needs matplotlib; install it with: pip install 'fairseq_stack[plots]'")
