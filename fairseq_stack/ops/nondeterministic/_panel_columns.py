"""The columns of an incremental state in PyTorch, on any device.

For autograd a step is one function (``_followed_columns.py``), and ``_column_gradient.py`` has its backward pass.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from .._undefined import finite, marks_of
from ._column_gradient import Gradients, Owed, differentiate
from ._columns import Past, Step, as_block, first_alpha, from_block, step
from ._followed_columns import FollowedColumns
from ._log_weights import first_configuration
from ._panels import Adjoint, Panel
from ._precision import Precision
from ._tracked_columns import Column, TrackedColumns, logarithms


@dataclass(frozen=True, eq=False)
class PanelColumns(FollowedColumns):
    """What t steps leave, in panels, to which a step only adds; ``reorder`` copies them.

    Attributes:
        panels: the panels of the columns 0..t, from the first that the next step needs on.
        count: t + 1.
        marks: (B, m), added to all further readings: NaN for the components in which a vector is not finite, and for
            all components if a log weight is NaN or inf; otherwise 0.
        latest: step t without gamma, which is in its panel; None where t = 0, or after ``select``.
        precision: whether float64 has been precise enough so far; None before the first column.
        ends: where the derivatives of each panel that autograd follows end.
    """

    panels: tuple[Panel, ...]
    count: int
    marks: Tensor
    latest: Step | None = None
    precision: Precision | None = None

    @classmethod
    def empty(cls, bottom: Tensor, num_states: int, num_symbols: int, window: int | None, weighs: bool) -> PanelColumns:
        marks = torch.zeros_like(bottom, dtype=torch.float64)
        return cls((), 0, marks, num_states=num_states, num_symbols=num_symbols, window=window, weighs=weighs)

    @property
    def batch_size(self) -> int:
        """B."""
        return self.marks.shape[0]

    @property
    def has_begun(self) -> bool:
        return self.count > 0

    @property
    def value_size(self) -> int:
        """m."""
        return self.marks.shape[1]

    def compute(self, logits: Tensor | None, value: Tensor) -> tuple[Tensor, PanelColumns]:
        value = value.double()
        panel = self._panel_of_next(value)
        slot = self.count - panel.begin
        panel.values[:, slot] = value
        if self.count == 0:
            marks, precision = _write_start(panel, logits)
            return value.new_empty(len(value), 0), self._with(panel, marks_of(value) + marks, None, precision)
        assert logits is not None and self.precision is not None
        panel.logits[:, slot] = logits
        computed = step(self._past(), logits.double(), self.window)
        block = panel.one(panel.blocks, self.count, self._first)
        block.copy_(as_block(computed.column.gamma, self.num_states))
        panel.exponents[:, panel.rows(self._first, self.count + 1), slot] = computed.column.exponents
        next_step = computed._replace(column=computed.column._replace(gamma=block.new_empty(0)))
        reading = torch.bmm(next_step.top.weights.transpose(1, 2), finite(self._vectors(panel)))
        panel.alpha[:, slot] = next_step.top.alpha
        panel.alpha_exponents[:, slot] = next_step.top.alpha_exponent
        after = self._with(panel, marks_of(value) + next_step.mark[:, None], next_step, self.precision.after(next_step))
        return reading + after.marks[:, None], after

    def ends_of(self, after: PanelColumns) -> tuple[int, ...]:
        if self.ends and self.panels[-1].begin == after.panels[-1].begin:
            return self.ends
        before = self.ends[-1] if self.ends else 0
        return *self.ends, before + after.panels[-1].adjoint_size

    def differentiate(self, after: PanelColumns, derivatives: Tensor, gradient: Tensor | None) -> tuple[Tensor, Tensor]:
        panel = after.panels[-1]
        slot = self.count - panel.begin
        adjoints = self._adjoints(panel, self.ends_of(after), derivatives)
        adjoint = adjoints[panel.begin]
        of_gamma = from_block(panel.one(adjoint.blocks, self.count, self._first))
        of_alpha = adjoint.alpha[:, slot]
        if after.latest is None:
            of_logits = _differentiate_start(panel, of_gamma[:, 0, 0] + of_alpha)
        else:
            gamma = from_block(panel.one(panel.blocks, self.count, self._first))
            latest = after.latest._replace(column=after.latest.column._replace(gamma=gamma))
            of_reading = None if gradient is None else gradient.double()
            gradients = Gradients(of_reading, of_gamma, of_alpha)
            owed = differentiate(self._past(), panel.logits[:, slot], self._vectors(panel), latest, gradients)
            self._add(owed, panel, adjoints)
            of_logits = owed.logits
        is_finite = panel.values[:, slot].isfinite()
        return of_logits, torch.where(is_finite, adjoint.values[:, slot], 0)

    def newest_alpha(self) -> tuple[Tensor, Tensor]:
        panel = self.panels[-1]
        slot = self.count - 1 - panel.begin
        return panel.alpha[:, slot], panel.alpha_exponents[:, slot]

    def derivative_of_alpha(self, after: PanelColumns, derivatives: Tensor) -> Tensor:
        panel = after.panels[-1]
        return self._adjoints(panel, self.ends_of(after), derivatives)[panel.begin].alpha[:, self.count - panel.begin]

    def select(self, index: Tensor) -> PanelColumns:
        panels = tuple(panel.select(index) for panel in self.panels)
        return dataclasses.replace(
            self,
            panels=panels,
            marks=self.marks[index],
            latest=None,
            precision=None if self.precision is None else self.precision.reorder(index),
        )

    def as_tracked(self) -> TrackedColumns:
        first = 0 if self._window is None else max(self.count - self._window, 0)
        return TrackedColumns.of([self._column(k) for k in range(first, self.count)], self.num_states, self.window)

    @property
    def _window(self) -> int | None:
        """D, but at least 2: a step needs a column before it."""
        return None if self.window is None else max(self.window, 2)

    @property
    def _first(self) -> int:
        """The first row and column that the next step needs."""
        return 0 if self._window is None else max(self.count - self._window + 1, 0)

    def _panel_of_next(self, value: Tensor) -> Panel:
        """A panel in which the next column may be written."""
        if not self.panels or self.panels[-1].end == self.count:
            panel = Panel.empty(self.count, self.num_states, self.num_symbols, self._window, value)
        elif self.panels[-1].claim(self.count):
            return self.panels[-1]
        else:
            panel = self.panels[-1].select(torch.arange(self.batch_size, device=value.device))
        panel.claim(self.count)
        return panel

    def _and(self, panel: Panel) -> list[Panel]:
        """The panels, and the panel of the next column, which is new or takes the place of the last."""
        return [*(x for x in self.panels if x.begin != panel.begin), panel]

    def _with(self, panel: Panel, marks: Tensor, latest: Step | None, precision: Precision) -> PanelColumns:
        """With the next column, and without panels that the step after it does not need."""
        count = self.count + 1
        kept = [x for x in self._and(panel) if self._window is None or x.end > count - self._window]
        return dataclasses.replace(
            self,
            panels=tuple(kept),
            count=count,
            marks=self.marks + marks,
            latest=latest,
            precision=precision,
            is_exact=bool(precision.is_enough.all()),
        )

    def _past(self) -> Past:
        """What the next step needs of the columns."""
        first, count, last = self._first, self.count, self.panels[-1]
        alpha, alpha_exponents = self._alpha()
        return Past(
            last.one(last.blocks, count - 1, first),
            last.exponents[:, last.rows(first, count), count - 1 - last.begin],
            [x.neighbours(first, count - 1) for x in self._popped()],
            alpha,
            alpha_exponents,
        )

    def _vectors(self, panel: Panel) -> Tensor:
        """v_i, from the first that the next step needs to its own, which is in its panel."""
        return torch.cat([x.values[:, x.within(self._first, self.count + 1)] for x in self._and(panel)], 1)

    def _popped(self) -> list[Panel]:
        """The panels with columns that the pops of the next step need."""
        return [x for x in self.panels if max(x.begin, self._first) < min(x.end, self.count - 1)]

    def _alpha(self) -> tuple[Tensor, Tensor]:
        """alpha of the columns that the next step needs, and its exponents, from column first - 1 on."""
        first, count = self._first, self.count
        alpha = torch.cat([x.alpha[:, x.within(first - 1, count)] for x in self.panels], 1)
        exponents = torch.cat([x.alpha_exponents[:, x.within(first - 1, count)] for x in self.panels], 1)
        if first > 0:
            return alpha, exponents
        unit = torch.zeros_like(alpha[:, :1])  # alpha[-1], Eq. 23
        unit[:, :, 0] = 1
        return torch.cat([unit, alpha], 1), pad(exponents, (1, 0))

    def _adjoints(self, panel: Panel, ends: tuple[int, ...], derivatives: Tensor) -> dict[int, Adjoint]:
        """Views of the derivatives, by the first column of a panel, for the panels that autograd follows."""
        begins = 0, *ends[:-1]
        followed = zip(reversed(self._and(panel)), reversed(begins), reversed(ends), strict=False)
        return {x.begin: x.adjoint(derivatives[begin:end]) for x, begin, end in followed}

    def _add(self, owed: Owed, panel: Panel, adjoints: dict[int, Adjoint]) -> None:
        """Add what the next step owes to the columns before it."""
        first, last = self._first, self.panels[-1]
        for x, of_blocks in zip(self._popped(), owed.blocks, strict=True):
            if x.begin in adjoints:
                x.several(adjoints[x.begin].blocks, first, self.count - 1).add_(of_blocks)
        if last.begin in adjoints:
            last.one(adjoints[last.begin].blocks, self.count - 1, first).add_(as_block(owed.last, self.num_states))
        for x in self._and(panel):
            if x.begin in adjoints:
                x.add(owed.alpha, adjoints[x.begin].alpha, first - 1)
                x.add(owed.vectors, adjoints[x.begin].values, first)

    def _column(self, number: int) -> Column:
        """A column, from the first row of its panel on."""
        panel = next(x for x in self.panels if number < x.end)
        slot = number - panel.begin
        return Column(
            logarithms(
                from_block(panel.one(panel.blocks, number, panel.first_row)),
                panel.exponents[:, panel.rows(panel.first_row, number + 1), slot],
            ),
            logarithms(panel.alpha[:, slot], panel.alpha_exponents[:, slot]),
            finite(panel.values[:, slot]),
            self.marks,
        )


def _write_start(panel: Panel, start: Tensor | None) -> tuple[Tensor, Precision]:
    """Write column 0 (Eq. 21 and Eq. 23).

    Args:
        panel: the first.
        start: log weights of the configurations that runs start in, (B, C); None for state 0 and symbol 0.

    Returns:
        Marks, (B, 1), and whether float64 is precise enough.
    """
    logits = panel.logits[:, 0, :, 0]
    logits.copy_(first_configuration(logits.shape, logits) if start is None else start)
    weights, mark, spread = first_alpha(logits)
    panel.alpha[:, 0] = weights
    block = panel.one(panel.blocks, 0, 0)[..., 0, 0]
    block.copy_(weights.unflatten(1, block.shape[:0:-1]).transpose(1, 2))
    panel.exponents[:, 0, 0] = 0
    return mark[:, None], Precision.of_start(weights, spread)


def _differentiate_start(panel: Panel, gradient: Tensor) -> Tensor:
    """The gradient of the log weights of the start from that of alpha[0]."""
    logits = panel.logits[:, 0, :, 0].requires_grad_()
    with torch.enable_grad():
        weights, *_ = first_alpha(logits)
    (of_logits,) = torch.autograd.grad(weights, logits, gradient)
    return of_logits
