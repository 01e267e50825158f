"""Looped transformers: a side of fairseq's transformer runs its list of layers several times, with the same weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from torch import Tensor, nn

from fairseq_stack.models.incremental import IncrementalState


class Visit:
    """A layer in one of the loops: it is called as the layer is, and has what it kept from step to step in this loop.

    Args:
        layer: the layer.
        loop: the number of the loop, from 0.
        injected: what to add to the input, (n, B, d) in a list, as it is known only when the first layer is called; or
            None.
    """

    def __init__(self, layer: nn.Module, loop: int, injected: list[Tensor] | None) -> None:
        self.layer = layer
        self.loop = loop
        self.injected = injected

    def inputs(self, hidden: Tensor) -> Tensor:
        """What the layer reads, (n, B, d), after a layer that returned ``hidden`` (n, B, d)."""
        if self.injected is None:
            return hidden
        if self.loop == 0:
            self.injected.append(hidden)
            return hidden
        return hidden + self.injected[0]

    def __call__(self, hidden: Tensor, *args: Any, **kwargs: Any) -> Any:
        """As the layer; a decoder's has the encoder's outputs, their padding and the incremental state in ``args``."""
        if len(args) == 3 and args[2] is not None:
            args = (*args[:2], of_loop(args[2], self.loop))
        return self.layer(self.inputs(hidden), *args, **kwargs)


class LoopedLayers(nn.ModuleList):
    """The layers of a side. Iterating yields a :class:`Visit` to each layer in each loop, in the order of computation.

    Args:
        layers: the layers.
        num_loops: K, how often they run.
        injects: add what the first loop read, x, to what every other loop reads.
    """

    def __init__(self, layers: Iterable[nn.Module], num_loops: int, injects: bool) -> None:
        super().__init__(layers)
        self.num_loops = num_loops
        self.injects = injects

    def __iter__(self) -> Iterator[Visit]:  # type: ignore[override]  # a visit is called as a layer is
        injected: list[Tensor] = []
        for loop in range(self.num_loops):
            for number, layer in enumerate(self._modules.values()):
                assert layer is not None
                yield Visit(layer, loop, injected if self.injects and number == 0 else None)


def loop_layers(side: Any, options: Any) -> None:
    """Let a side of a transformer run its layers ``stack_loops`` times; one loop leaves it as fairseq built it."""
    if options.stack_loops > 1:
        side.layers = LoopedLayers(side.layers, options.stack_loops, options.loop_injection)


def of_loop(incremental_state: IncrementalState, loop: int) -> IncrementalState:
    """What the layers keep in one loop: fairseq keys it by module, and a module is in every loop."""
    return incremental_state if loop == 0 else incremental_state.setdefault(f"loop {loop}", {})
