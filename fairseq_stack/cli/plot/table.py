"""``fairseq-stack plot table NAME=RESULT...``: the cross-entropy difference of models on languages, as a table."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fairseq_stack.evaluation.cfl_result import NOTE_ON_BOUNDS
from fairseq_stack.evaluation.markdown import MISSING, escaped, table
from fairseq_stack.files import require_writable, written_whole

from .figures import RESTARTS, add_restarts, read_comparison

if TYPE_CHECKING:
    from fairseq_stack.evaluation.cfl_comparison import Comparison, Restarts

SUMMARY = "models and languages in a table"

DESCRIPTION = f"""\
Tabulate the cross-entropy difference of models on languages, in Markdown. The best
value of each language is bold. The signatures of the scores follow.

{RESTARTS}"""

EXAMPLE = """\
examples:
  fairseq-stack plot table Tf=out/tf.json Tf+Nd=out/nd.json
  fairseq-stack plot table Tf=out/tf.json Tf+Nd=out/nd.json --output table.md"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_restarts(parser)
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="file to write (default: the terminal)")


def run(args: argparse.Namespace) -> int:
    if args.output is not None:
        require_writable(args.output)
    text = render(read_comparison(args))
    if args.output is None:
        print(text)
        return 0
    with written_whole(args.output) as file:
        file.write(f"{text}\n".encode())
    print(args.output)
    return 0


def render(comparison: Comparison) -> str:
    """The table, what it shows, and the signatures of its scores."""
    languages = comparison.groups.values()
    models = list(dict.fromkeys(model for of_language in languages for model in of_language))
    columns = [_column([of_language.get(model) for model in models]) for of_language in languages]
    rows = [[escaped(model), *cells] for model, *cells in zip(models, *columns, strict=True)]
    shown = [f"Cross-entropy difference (nats per symbol), on {comparison.split}; less is better.", *comparison.notes]
    signatures = dict.fromkeys(
        f"`{labelled.result.signature}`"
        for of_language in languages
        for restarts in of_language.values()
        for labelled in restarts
    )
    parts = ["\n".join(shown), table(["model", *map(escaped, comparison.groups)], rows), NOTE_ON_BOUNDS]
    return "\n\n".join([*parts, "\n".join(signatures)])


def _column(column: Sequence[Restarts | None]) -> list[str]:
    """The differences of the models on one language; the least ones, as they are printed, are bold."""
    values = [[labelled.result.overall.difference.value for labelled in restarts or ()] for restarts in column]
    # Adding 0.0 makes 0.0 of -0.0.
    means = [round(statistics.fmean(of_model), 3) + 0.0 if of_model else None for of_model in values]
    best = min(mean for mean in means if mean is not None)
    return [
        MISSING if mean is None else _cell(of_model, mean, mean == best)
        for of_model, mean in zip(values, means, strict=True)
    ]


def _cell(values: Sequence[float], mean: float, is_best: bool) -> str:
    cell = f"**{mean:.3f}**" if is_best else f"{mean:.3f}"
    return f"{cell} ± {statistics.stdev(values):.3f}" if len(values) > 1 else cell
