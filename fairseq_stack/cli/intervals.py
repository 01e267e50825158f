"""The options of bootstrap intervals."""

from __future__ import annotations

import argparse

from fairseq_stack.errors import UserError
from fairseq_stack_preprocess.errors import require_at_least, require_at_most

GREATEST = 1_000_000
"""The greatest number of resampled sets (and of samples), and the greatest seed."""


def add_intervals(parser: argparse.ArgumentParser, seed_of: str = "bootstrap intervals") -> None:
    """Declare ``--bootstrap``, ``--confidence`` and ``--seed``, which decides on ``seed_of``."""
    parser.add_argument(
        "--bootstrap",
        type=int,
        metavar="N",
        default=1000,
        help="resampled sets of strings behind each interval (default: 1000)",
    )
    parser.add_argument(
        "--confidence", type=float, metavar="P", default=0.95, help="probability of each interval (default: 0.95)"
    )
    parser.add_argument("--seed", type=int, metavar="N", default=0, help=f"seed of {seed_of} (default: 0)")


def check_intervals(args: argparse.Namespace) -> None:
    """Raise an error for options that are out of range."""
    for flag, value, least in (("--bootstrap", args.bootstrap, 1), ("--seed", args.seed, 0)):
        require_at_least(flag, value, least)
        require_at_most(flag, value, GREATEST)
    if not 0 < args.confidence < 1:
        raise UserError(f"--confidence must be greater than 0 and less than 1, got {args.confidence:g}")
