"""Of what the best parts of a run consist: equations (n)-(p) of ``docs/algorithm.md``, from the left to the right."""

from __future__ import annotations

import ctypes
import heapq
import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from torch import Tensor

from ._excursions import BestParts
from .runs import Configuration, Operation, Run, Step


class Part(NamedTuple):
    """A part of a run, whose ends are known.

    Attributes:
        kind: ``"forward"``, ``"excursion"`` or ``"removal"``, as in :class:`BestParts`; or ``"end"``, which is from the
            start to any configuration after step t.
        ends: the indices of its weight there: y, t; or j, x, r, t; or t.
    """

    kind: str
    ends: tuple[int, ...]


class Choice(NamedTuple):
    """One way to make a part.

    Attributes:
        parts: the smaller parts of which it consists.
        taken: the step that it takes besides, with its number; or the configuration in which the run starts.
        weight: its log weight.
    """

    parts: tuple[Part, ...] = ()
    taken: tuple[int, Step] | Configuration | None = None
    weight: float = -math.inf


_Group = tuple[list[float], Callable[[int], Choice]]
"""The log weights of some choices, and what makes a choice, except for its weight, from its place among them."""


class _Numbers:
    """The elements of a tensor on the CPU, in float64, without the time that an operation of PyTorch takes."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor  # holds the memory
        self._strides = tensor.stride()
        used = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, self._strides, strict=True))
        array = (ctypes.c_double * (used if tensor.numel() else 0)).from_address(tensor.data_ptr())
        self._flat = memoryview(array).cast("B").cast("d")

    def along(self, axis: int, count: int, *begin: int) -> list[float]:
        """So many elements along an axis, from the index ``begin`` on."""
        first, step = sum(map(operator.mul, begin, self._strides)), self._strides[axis]
        elements: Any = self._flat[first : first + count * step : step].tolist()
        return elements


class Derivations:
    """The best ways to make the parts of the runs of a sequence.

    Args:
        best: the best parts of the sequence.
        count: how many ways to make a part are wanted.
    """

    def __init__(self, best: BestParts, count: int) -> None:
        self.count = count
        _, self._size, self._num_states = best.pop.shape
        self._num_symbols = self._size // self._num_states
        self._forward_weights = _Numbers(best.forward)
        self._removals, self._excursions = _Numbers(best.removals), _Numbers(best.excursions)
        self._steps: dict[Operation, _Numbers] = {
            "push": _Numbers(best.push),
            "replace": _Numbers(best.replace),
            "pop": _Numbers(best.pop),
        }
        self._groups: dict[str, Callable[..., list[_Group]]] = {
            "end": self._end,
            "forward": self._forward,
            "excursion": self._excursion,
            "removal": self._removal,
        }
        self._known: dict[Part, list[Choice]] = {}

    def choices(self, part: Part) -> list[Choice]:
        """The best ways to make a part, the best one first; none has the weight 0."""
        if part not in self._known:
            self._known[part] = self._best(self._groups[part.kind](*part.ends))
        return self._known[part]

    def run(self, taken: list[tuple[int, Step] | Configuration]) -> Run:
        """The run that starts and steps as ``taken`` says, in any order."""
        (start,) = (x for x in taken if isinstance(x, Configuration))
        steps = [step for _, step in sorted(x for x in taken if not isinstance(x, Configuration))]
        weights = self._forward_weights.along(0, 1, self._number(*start), 0)
        for t, step in enumerate(steps):
            target = step.state if step.symbol is None else self._number(step.state, step.symbol)
            weights += self._steps[step.operation].along(2, 1, t, self._number(*step.source), target)
        return Run(math.fsum(weights), start, tuple(steps))

    def _best(self, groups: list[_Group]) -> list[Choice]:
        weights = [weight for of_group, _ in groups for weight in of_group]
        choices = []
        for place in self._best_places(weights):
            weight = weights[place]
            if weight == -math.inf:
                break
            for of_group, make in groups:
                if place < len(of_group):
                    choices.append(make(place)._replace(weight=weight))
                    break
                place -= len(of_group)
        return choices

    def _best_places(self, weights: list[float]) -> list[int]:
        places = range(len(weights))
        if self.count == 1:
            return [max(places, key=weights.__getitem__)]
        return heapq.nlargest(self.count, places, key=weights.__getitem__)

    def _end(self, t: int) -> list[_Group]:
        return [(self._forward_weights.along(0, self._size, 0, t), lambda y: Choice((Part("forward", (y, t)),)))]

    def _forward(self, y: int, t: int) -> list[_Group]:
        """(p)"""
        before, (r, symbol) = self._forward_weights, self._configuration(y)
        if t == 0:
            return [(before.along(1, 1, y, 0), lambda _: Choice(taken=Configuration(r, symbol)))]
        latest = before.along(0, self._size, 0, t - 1)

        def step(operation: Operation) -> _Group:
            def make(x: int) -> Choice:
                taken = Step(operation, self._configuration(x), r, symbol)
                return Choice((Part("forward", (x, t - 1)),), (t, taken))

            return _sums(latest, self._steps[operation].along(1, self._size, t - 1, 0, y)), make

        def come_back(u: int) -> _Group:
            x = self._number(u, symbol)

            def make(k: int) -> Choice:
                return Choice((Part("forward", (x, k)), Part("excursion", (k, x, r, t))))

            return _sums(before.along(1, t - 1, x, 0), self._excursions.along(0, t - 1, 0, x, r, t)), make

        return [step("push"), step("replace"), *map(come_back, range(self._num_states))]

    def _excursion(self, j: int, x: int, r: int, t: int) -> list[_Group]:
        """(o)"""
        return [self._step_and_removal("push", j, x, r, t)]

    def _removal(self, j: int, x: int, r: int, t: int) -> list[_Group]:
        """(n)"""
        source = self._configuration(x)
        if t == j + 1:
            step = Step("pop", source, r, None)
            return [(self._steps["pop"].along(2, 1, j, x, r), lambda _: Choice(taken=(t, step)))]

        first, later, count = self._excursions, self._removals, t - j - 2

        def leave_first(u: int) -> _Group:
            after = self._number(u, source.symbol)

            def make(place: int) -> Choice:
                k = j + 2 + place
                return Choice((Part("excursion", (j, x, u, k)), Part("removal", (k, after, r, t))))

            return _sums(first.along(3, count, j, x, u, j + 2), later.along(0, count, j + 2, after, r, t)), make

        return [self._step_and_removal("replace", j, x, r, t), *map(leave_first, range(self._num_states))]

    def _step_and_removal(self, operation: Operation, j: int, x: int, r: int, t: int) -> _Group:
        steps = self._steps[operation]

        def make(w: int) -> Choice:
            step = Step(operation, self._configuration(x), *self._configuration(w))
            return Choice((Part("removal", (j + 1, w, r, t)),), (j + 1, step))

        return _sums(steps.along(2, self._size, j, x, 0), self._removals.along(1, self._size, j + 1, 0, r, t)), make

    def _configuration(self, number: int) -> Configuration:
        return Configuration(*divmod(number, self._num_symbols))

    def _number(self, state: int, symbol: int) -> int:
        return state * self._num_symbols + symbol


def _sums(some: list[float], others: list[float]) -> list[float]:
    return [x + y for x, y in zip(some, others, strict=True)]
