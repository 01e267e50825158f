"""Initialization of stack transformers."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from fairseq_stack.models.shared_options import initial_scale
from fairseq_stack.networks.initialization import initialize_transformer


def initialize(model: Any, args: Namespace) -> None:
    """Initialise the model again as ``--stack-init`` says.

    Raises:
        UserError: the scale is not a positive number, or has no effect.
    """
    initialize_transformer(model, args.stack_init, initial_scale(args, 0.01))
