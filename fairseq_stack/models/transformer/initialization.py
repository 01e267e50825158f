"""Initialization as in Appendix D.2 of DuSell & Chiang (2024)."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from fairseq_stack.models.shared_options import initial_scale
from fairseq_stack.networks.initialization import initialize_transformer


def initialize(model: Any, args: Namespace) -> None:
    """Initialise the model again if ``--stack-init paper`` is set.

    Raises:
        UserError: the scale is not a positive number, or has no effect.
    """
    scale = initial_scale(args, 0.01)
    if args.stack_init == "paper":
        initialize_transformer(model, scale)
