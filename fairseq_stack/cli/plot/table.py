"""``fairseq-stack plot table NAME=RESULT...``: models and languages in a table."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from fairseq_stack.errors import UserError
from fairseq_stack.evaluation import latex, markdown
from fairseq_stack.evaluation.cfl_result import NOTE_ON_BOUNDS
from fairseq_stack.files import require_writable, written_whole

from ..arguments import Subcommand
from .figures import RESTARTS, add_restarts, read_comparison

if TYPE_CHECKING:
    from fairseq_stack.evaluation.cfl_comparison import Comparison, Restarts
    from fairseq_stack.evaluation.cfl_result import CFLResult

FORMATS: Mapping[str, ModuleType] = {"markdown": markdown, "latex": latex}
SUFFIXES = {".md": "markdown", ".tex": "latex"}


@dataclass(frozen=True)
class Metric:
    """A score that can be tabulated.

    Attributes:
        title: what it is.
        value: it, of a result; None if the result does not have it.
        digits: number of digits after the point.
        least: whether the lowest score is the best.
        note: a footnote; "" if there is none.
    """

    title: str
    value: Callable[[CFLResult], float | None]
    digits: int
    least: bool
    note: str = ""


def _accuracy(result: CFLResult) -> float | None:
    positions = result.overall.next_symbol
    return None if positions is None or positions.accuracy is None else 100 * positions.accuracy


def _share(result: CFLResult) -> float | None:
    return None if result.samples is None else 100 * result.samples.share


METRICS = {
    "difference": Metric(
        "cross-entropy difference (nats per symbol)",
        lambda result: result.overall.difference.value,
        3,
        least=True,
        note=NOTE_ON_BOUNDS,
    ),
    "cross-entropy": Metric(
        "cross-entropy (nats per symbol)", lambda result: result.overall.cross_entropy, 3, least=True
    ),
    "accuracy": Metric("accuracy of the next symbol where only one is possible (%)", _accuracy, 1, least=False),
    "samples": Metric("samples in the language (%)", _share, 1, least=False),
}


class Table(Subcommand):
    """Models and languages in a table."""

    name = "table"
    summary = "models and languages in a table"
    description = f"""\
Tabulate models and languages in Markdown, or in LaTeX with the package booktabs. The
best value of each language is bold. The signatures of the scores follow.

{RESTARTS}"""
    example = """\
examples:
  fairseq-stack plot table Tf=out/tf.json Tf+Nd=out/nd.json
  fairseq-stack plot table Tf=out/tf.json Tf+Nd=out/nd.json --output table.tex"""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_restarts(parser)
        parser.add_argument(
            "--metric",
            metavar="METRIC",
            choices=list(METRICS),
            default="difference",
            help=f"the score in the table: one of {', '.join(METRICS)} (default: difference)",
        )
        parser.add_argument(
            "--format", choices=list(FORMATS), help="format of the table (default: by the name of FILE, or markdown)"
        )
        kinds = f"file to write ({', '.join(SUFFIXES)}; default: the terminal)"
        parser.add_argument("-o", "--output", metavar="FILE", type=Path, help=kinds)

    def run(self, args: argparse.Namespace) -> int:
        name = format_of(args.output, args.format)
        if args.output is not None:
            require_writable(args.output)
        text = render(read_comparison(args), METRICS[args.metric], FORMATS[name])
        if args.output is None:
            print(text)
            return 0
        with written_whole(args.output) as file:
            file.write(f"{text}\n".encode())
        print(args.output)
        return 0


def format_of(output: Path | None, wanted: str | None) -> str:
    """The name of the format.

    Raises:
        UserError: the name of the file ends otherwise.
    """
    if output is None:
        return wanted or "markdown"
    if output.suffix not in SUFFIXES:
        raise UserError(f"{output}: expected a name that ends with one of {', '.join(SUFFIXES)}")
    by_name = SUFFIXES[output.suffix]
    if wanted not in (None, by_name):
        raise UserError(f"{output} is a name for {by_name}, but --format is {wanted}")
    return by_name


def render(comparison: Comparison, metric: Metric, markup: ModuleType) -> str:
    """The table, what it shows, and the signatures of its scores.

    Raises:
        UserError: no result has the score.
    """
    figures = {
        (language, model): values
        for language, models in comparison.groups.items()
        for model, restarts in models.items()
        if (values := values_of(restarts, metric))
    }
    if not figures:
        raise UserError(f"no result has the score {metric.title!r}")
    models = list(dict.fromkeys(model for of_language in comparison.groups.values() for model in of_language))
    columns = [
        _column([figures.get((language, model)) for model in models], metric, markup) for language in comparison.groups
    ]
    rows = [[markup.escaped(model), *cells] for model, *cells in zip(models, *columns, strict=True)]
    table = markup.table(["model", *map(markup.escaped, comparison.groups)], rows)
    better = "less is better" if metric.least else "more is better"
    remarks = [f"{metric.title.capitalize()}, on {comparison.split}; {better}.", *comparison.notes]
    signatures = dict.fromkeys(
        labelled.result.signature
        for of_language in comparison.groups.values()
        for restarts in of_language.values()
        for labelled in restarts
    )
    notes = [metric.note] if metric.note else []
    parts = [
        [*map(markup.remark, remarks)],
        [table],
        [*map(markup.remark, notes)],
        [*map(markup.signature, signatures)],
    ]
    return str(markup.BETWEEN.join("\n".join(part) for part in parts if part))


def values_of(restarts: Restarts, metric: Metric) -> list[float]:
    """The score of each restart; none if a restart does not have it."""
    values = [metric.value(labelled.result) for labelled in restarts]
    return [] if None in values else [value for value in values if value is not None]


def _column(column: Sequence[Sequence[float] | None], metric: Metric, markup: ModuleType) -> list[str]:
    """The scores of the models on one language; the best ones, as they are printed, are bold."""
    # Adding 0.0 makes 0.0 of -0.0.
    means = [None if values is None else round(statistics.fmean(values), metric.digits) + 0.0 for values in column]
    best = (min if metric.least else max)((mean for mean in means if mean is not None), default=None)
    return [
        markup.MISSING if values is None or mean is None else _cell(values, mean, mean == best, metric, markup)
        for values, mean in zip(column, means, strict=True)
    ]


def _cell(values: Sequence[float], mean: float, is_best: bool, metric: Metric, markup: ModuleType) -> str:
    cell = str(markup.number(f"{mean:.{metric.digits}f}"))
    if is_best:
        cell = markup.bold(cell)
    if len(values) > 1:
        cell += f" {markup.PLUS_MINUS} {statistics.stdev(values):.{metric.digits}f}"
    return cell


add_parser = Table().add_parser
