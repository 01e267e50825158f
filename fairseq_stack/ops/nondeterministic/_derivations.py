"""Of what the best parts of a run consist: equations (n)-(p) of ``docs/algorithm.md``, from the left to the right."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ._excursions import Array, BestParts
from .runs import Configuration, Operation, Run, Step


class Part(NamedTuple):
    """A part of a run, whose ends are known.

    Attributes:
        kind: ``"forward"``, ``"excursion"`` or ``"removal"``, as in :class:`BestParts`; or ``"end"``, which is from the
            start to any configuration after step t.
        ends: the indices of its weight there: t, r, y; or j, s, z, r, t; or t.
    """

    kind: str
    ends: tuple[int, ...]


class Choice(NamedTuple):
    """One way to make a part.

    Attributes:
        weight: its log weight.
        parts: the smaller parts of which it consists.
        taken: the step that it takes besides, with its number; or the configuration in which the run starts.
    """

    weight: float
    parts: tuple[Part, ...] = ()
    taken: tuple[int, Step] | Configuration | None = None


_Group = tuple[Array, Callable[[int, int], Choice]]
"""The log weights of some choices, (A, A'), and what makes a choice, except for its weight, from its index."""


class Derivations:
    """The best ways to make the parts of the runs of a sequence.

    Args:
        best: the best parts of the sequence.
        count: how many ways to make a part are wanted.
    """

    def __init__(self, best: BestParts, count: int) -> None:
        self.best = best
        self.count = count
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
        weights = [self.best.forward[(*start, 0)]]
        for t, step in enumerate(steps):
            target = (step.state,) if step.symbol is None else (step.state, step.symbol)
            weights.append(getattr(self.best, step.operation)[(t, *step.source, *target)])
        return Run(math.fsum(weights), start, tuple(steps))

    def _best(self, groups: list[_Group]) -> list[Choice]:
        weights = np.concatenate([own.ravel() for own, _ in groups])
        choices = []
        for place in self._best_places(weights):
            weight = float(weights[place])
            if weight == -math.inf:
                break
            for own, make in groups:
                if place < own.size:
                    choices.append(make(*divmod(place, own.shape[1]))._replace(weight=weight))
                    break
                place -= own.size
        return choices

    def _best_places(self, weights: Array) -> list[int]:
        if self.count == 1:
            return [int(weights.argmax())]
        places: list[int] = np.argsort(-weights, kind="stable")[: self.count].tolist()
        return places

    def _end(self, t: int) -> list[_Group]:
        return [(self.best.forward[:, :, t], lambda r, y: _choice(Part("forward", (t, r, y))))]

    def _forward(self, t: int, r: int, y: int) -> list[_Group]:
        """(p)"""
        best = self.best
        if t == 0:
            return [(best.forward[r, y, None, :1], lambda *_: _choice(taken=Configuration(r, y)))]

        def step(operation: Operation, q: int, x: int) -> Choice:
            return _choice(Part("forward", (t - 1, q, x)), taken=(t, Step(operation, Configuration(q, x), r, y)))

        def come_back(k: int, u: int) -> Choice:
            return _choice(Part("forward", (k, u, y)), Part("excursion", (k, u, y, r, t)))

        before = best.forward[:, :, t - 1]
        return [
            (before + best.push[t - 1, :, :, r, y], lambda q, x: step("push", q, x)),
            (before + best.replace[t - 1, :, :, r, y], lambda q, x: step("replace", q, x)),
            (best.forward[:, y, : t - 1].T + best.excursions[: t - 1, :, y, r, t], come_back),
        ]

    def _excursion(self, j: int, s: int, z: int, r: int, t: int) -> list[_Group]:
        """(o)"""
        return [self._step_and_removal("push", j, s, z, r, t)]

    def _removal(self, j: int, s: int, z: int, r: int, t: int) -> list[_Group]:
        """(n)"""
        best = self.best
        if t == j + 1:
            step = Step("pop", Configuration(s, z), r, None)
            return [(best.pop[j, s, z, r : r + 1, None], lambda *_: _choice(taken=(t, step)))]

        def leave_first(u: int, k: int) -> Choice:
            k += j + 2
            return _choice(Part("excursion", (j, s, z, u, k)), Part("removal", (k, u, z, r, t)))

        later = best.removals[j + 2 : t, :, z, r, t].T
        return [
            self._step_and_removal("replace", j, s, z, r, t),
            (best.excursions[j, s, z, :, j + 2 : t] + later, leave_first),
        ]

    def _step_and_removal(self, operation: Operation, j: int, s: int, z: int, r: int, t: int) -> _Group:
        def make(state: int, symbol: int) -> Choice:
            step = Step(operation, Configuration(s, z), state, symbol)
            return _choice(Part("removal", (j + 1, state, symbol, r, t)), taken=(j + 1, step))

        weights = self.best.push if operation == "push" else self.best.replace
        return weights[j, s, z] + self.best.removals[j + 1, :, :, r, t], make


def _choice(*parts: Part, taken: tuple[int, Step] | Configuration | None = None) -> Choice:
    return Choice(-math.inf, parts, taken)
