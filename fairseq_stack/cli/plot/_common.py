"""What the subcommands of ``fairseq-stack plot`` share: names of results, and options of figures."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from fairseq_stack.errors import UserError
from fairseq_stack.files import require_writable
from fairseq_stack.plots.panels import draw_legend, literal
from fairseq_stack.plots.style import FORMATS, figure, grid, require_format, require_matplotlib, styles_of

if TYPE_CHECKING:
    from fairseq_stack.evaluation.cfl_comparison import Comparison

Values = TypeVar("Values")

DIFFERENCE = "cross-entropy difference\n(nats a token)"


def named(argument: str) -> tuple[str | None, Path]:
    """The parts of ``NAME=PATH``; of a path alone the name is None.

    Raises:
        UserError: the name or the path is empty.
    """
    name, equals, path = argument.partition("=")
    if not equals:
        return None, Path(argument)
    if not name or not path:
        raise UserError(f"{argument}: expected NAME=PATH")
    return name, Path(path)


RESTARTS = """\
A RESULT is a file that fairseq-stack evaluate-cfl wrote. Results on several corpora
may be given together. Several results of one NAME on one corpus are restarts; the
best one is shown, which is the one with the least difference on validation data.
Give the results of the restarts on validation data as well, in the same order (they
only serve this choice), or show the mean and the standard deviation with --mean."""
"""How results are given, for the descriptions of commands."""


def add_results(parser: argparse.ArgumentParser) -> None:
    """Declare ``NAME=RESULT...`` and ``--mean``."""
    parser.add_argument("results", metavar="NAME=RESULT", nargs="+", help="a result, and the name of the model")
    parser.add_argument("--mean", action="store_true", help="show the mean of restarts instead of the best one")


def read_comparison(args: argparse.Namespace, *, by_length: bool = False) -> Comparison:
    """Read what :func:`add_results` declared; see ``compare`` for ``by_length``.

    Raises:
        UserError: a result has no name, a file cannot be read, or the results cannot be compared.
    """
    from fairseq_stack.evaluation.cfl_comparison import Labelled, compare
    from fairseq_stack.evaluation.cfl_result import CFLResult

    results = []
    for argument in args.results:
        name, path = named(argument)
        if name is None:
            raise UserError(f"{argument}: expected NAME=RESULT")
        results.append(Labelled(name, str(path), CFLResult.read(path)))
    return compare(results, mean=args.mean, by_length=by_length)


def add_figure(parser: argparse.ArgumentParser) -> None:
    """Declare ``--output``."""
    parser.add_argument(
        "-o", "--output", metavar="FIGURE", type=Path, required=True, help=f"file to write ({', '.join(FORMATS)})"
    )


def add_log(parser: argparse.ArgumentParser) -> None:
    """Declare ``--log``."""
    parser.add_argument("--log", action="store_true", help="logarithmic scale of the values")


def check_figure(path: Path) -> None:
    """Raise UserError if the figure cannot be drawn or written: before results are read, which may take long."""
    require_matplotlib()
    require_format(path)
    require_writable(path)


def draw_panels(
    panels: Mapping[str, Mapping[str, Values]],
    path: Path,
    draw_panel: Callable[[Any, Mapping[str, Values], Mapping[str, Mapping[str, str]]], None],
    *,
    xlabel: str,
    ylabel: str,
) -> None:
    """Draw models, with a panel for each language or task.

    Args:
        panels: what is drawn, by language and model.
        path: the figure to write.
        draw_panel: draws what is in one panel, by model, on ``axes``, with these styles of the models.
        xlabel: what is below the panels.
        ylabel: what is beside the panels.
    """
    rows, columns = grid(len(panels))
    looks = styles_of(model for models in panels.values() for model in models)
    with figure(path, rows, columns, (max(3.6 * columns, 4.5), 3 * rows), path.suffix[1:]) as drawn:
        for axes, (language, models) in zip(drawn.flat, panels.items(), strict=False):
            draw_panel(axes, models, looks)
            axes.set(title=literal(language), xlabel=xlabel)
        for axes in drawn[:, 0]:
            axes.set_ylabel(ylabel)
        draw_legend(drawn, len(panels))
