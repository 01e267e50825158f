"""Controls of an evaluation: the same model, whose stacks give it less than they know."""

from __future__ import annotations

import random
import re

from torch import Tensor, nn

from fairseq_stack.errors import UserError
from fairseq_stack.hub.interface import Hub, LanguageModelHub
from fairseq_stack.modules import StackAttention
from fairseq_stack.modules.nondeterministic import AutomatonStackAttention

PERMUTED = "permuted-readings"


def apply_control(hub: Hub, control: str, seed: int) -> None:
    """Change the stacks of all models of a hub.

    ``permuted-readings``: a position t > 1 of a language model gets the reading r_p(t) of an earlier one, with p(t)
    drawn uniformly from 1 to t - 1; p is the same for all sequences. ``memory-D``: nondeterministic stacks remember
    only what was pushed in the last D steps, as in ``nd-Q-S-m@D``.

    Raises:
        UserError: there is no such control, or no model has a stack that it changes.
    """
    memory = re.fullmatch(r"memory-([1-9]\d*)", control)
    if memory is None and control != PERMUTED:
        raise UserError(f"--control: expected {PERMUTED} or memory-D with a number D of steps, got {control!r}")
    changed = _limit_memory(hub, int(memory[1])) if memory else _permute_readings(hub, seed)
    if not changed:
        kind = "a nondeterministic stack" if memory else "stack attention in a language model"
        raise UserError(f"--control {control}: expected a model with {kind}")


def _limit_memory(hub: Hub, steps: int) -> bool:
    stacks = [module for module in hub.models.modules() if isinstance(module, AutomatonStackAttention)]
    for stack in stacks:
        stack.window = min(steps, stack.window or steps)
    return bool(stacks)


def _permute_readings(hub: Hub, seed: int) -> bool:
    """Change what W_y reads; recurrent controllers, which have none, stay as they are."""
    modules = hub.models.modules() if isinstance(hub, LanguageModelHub) else ()
    outputs = [x.output for x in modules if isinstance(x, StackAttention) and isinstance(x.output, nn.Linear)]
    for output in outputs:
        output.register_forward_pre_hook(_EarlierReadings(seed))
    return bool(outputs)


class _EarlierReadings:
    """Gives W_y the readings of earlier positions."""

    def __init__(self, seed: int) -> None:
        self._generator = random.Random(seed)
        self._earlier = [0]

    def __call__(self, output: nn.Module, inputs: tuple[Tensor]) -> tuple[Tensor]:
        (readings,) = inputs
        length = readings.size(1)
        while len(self._earlier) < length:
            self._earlier.append(self._generator.randrange(len(self._earlier)))
        return (readings[:, self._earlier[:length]],)
