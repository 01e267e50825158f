"""What the subcommands of ``fairseq-stack plot`` share: names of results, and options of figures."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from fairseq_stack.errors import UserError
from fairseq_stack.files import require_writable
from fairseq_stack.plots.panels import (
    draw_bound,
    draw_intervals,
    draw_legend,
    literal,
    scale_logarithmically,
)
from fairseq_stack.plots.style import FORMATS, figure, grid, require_format, require_matplotlib, styles_of

if TYPE_CHECKING:
    from fairseq_stack.evaluation.cfl_comparison import Comparison
    from fairseq_stack.evaluation.results import Estimate

Values = TypeVar("Values")
Content = TypeVar("Content")

Looks = Mapping[str, Mapping[str, str]]
"""The style of each model."""

DIFFERENCE = "cross-entropy difference\n(nats per symbol)"

NOTATION = {
    "marked-reversal": "$w$#$w^R$",
    "unmarked-reversal": "$ww^R$",
    "padded-reversal": "$wa^pw^R$",
    "dyck": "Dyck",
    "hardest-cfl": "hardest CFL",
    "count-3": "$a^nb^nc^n$",
    "marked-copy": "$w$#$w$",
    "unmarked-copy": "$ww$",
    "marked-reverse-and-copy": "$w$#$w^R$#$w$",
    "unmarked-reverse-and-copy": "$ww^Rw$",
    "count-and-copy": r"$w\#^{|w|}w$",
    "unmarked-copy-different-alphabets": "$ww'$",
}
"""The papers' names of the languages, by ours."""

RESTARTS = """\
A RESULT is a file that fairseq-stack evaluate-cfl wrote. Results on several corpora
may be given together. Several results of one NAME on one corpus are restarts; the
best one, which has the lowest difference on validation data, is shown. Also give the
results of the restarts on validation data, in the same order (they are used only for
this selection), or show the mean and the standard deviation with --mean."""
"""How results are given, for the descriptions of commands."""


def add_output(parser: argparse.ArgumentParser) -> None:
    """Declare ``--output`` and ``--title``."""
    parser.add_argument(
        "-o", "--output", metavar="FIGURE", type=Path, required=True, help=f"file to write ({', '.join(FORMATS)})"
    )
    parser.add_argument(
        "--title", metavar="TEXT", default="", help="what the figure says, above the panels; $ begins a formula"
    )


def require_drawable(path: Path) -> None:
    """Raise UserError if a figure cannot be drawn and written: before results are read, which may take long."""
    require_matplotlib()
    require_format(path)
    require_writable(path)


def split_names(arguments: Sequence[str]) -> Iterator[tuple[str | None, Path]]:
    """The parts of each ``NAME=PATH``; of a path alone the name is None."""
    for number, argument in enumerate(arguments):
        name, path = _split_name(argument)
        if argument in arguments[:number]:
            raise UserError(f"{path} is given twice" + (f" for {name}" if name else ""))
        yield name, path


def _split_name(argument: str) -> tuple[str | None, Path]:
    name, equals, path = argument.partition("=")
    if not equals or Path(argument).exists():
        return None, Path(argument)
    if not name or not path:
        raise UserError(f"{argument}: expected NAME=PATH")
    return name, Path(path)


def read_named(arguments: Sequence[str], read: Callable[[Path], Content]) -> Iterator[tuple[str, Path, Content]]:
    """The name, the path and the content of each ``NAME=RESULT``."""
    for name, path in split_names(arguments):
        if name is None:
            raise UserError(f"{path}: expected NAME=RESULT")
        yield name, path, read(path)


def add_named(parser: argparse.ArgumentParser, what: str = "model") -> None:
    """Declare ``NAME=RESULT...``."""
    parser.add_argument("results", metavar="NAME=RESULT", nargs="+", help=f"a result, and the name of the {what}")


def add_restarts(parser: argparse.ArgumentParser) -> None:
    """Declare ``NAME=RESULT...`` and ``--mean``."""
    add_named(parser)
    parser.add_argument("--mean", action="store_true", help="show the mean of restarts instead of the best one")


def read_comparison(args: argparse.Namespace, *, by_length: bool = False) -> Comparison:
    """Read what :func:`add_restarts` declared; see ``compare`` for ``by_length``."""
    from fairseq_stack.evaluation.cfl_comparison import Labelled, compare
    from fairseq_stack.evaluation.cfl_result import CFLResult

    results = [Labelled(name, str(path), result) for name, path, result in read_named(args.results, CFLResult.read)]
    return compare(results, mean=args.mean, by_length=by_length)


def add_log(parser: argparse.ArgumentParser) -> None:
    """Declare ``--log``."""
    parser.add_argument("--log", action="store_true", help="logarithmic scale of the values")


def draw_estimates(axes: Any, models: Mapping[str, Mapping[int, Estimate]], looks: Looks) -> None:
    """A line for each model through its estimates, by what is below the panel, in the band of their intervals."""
    for model, estimates in models.items():
        draw_intervals(axes, model, {x: (y.value, y.low, y.high) for x, y in estimates.items()}, looks[model])


def scale_differences(axes: Any, *, log: bool, bound: str = "lower bound") -> None:
    """Make the scale of differences logarithmic, or draw their least value, which the legend calls ``bound``."""
    if log:
        scale_logarithmically(axes)
    else:
        draw_bound(axes, 0, bound)


def title_of(language: str) -> str:
    """The name of a language in a figure: as in the papers, with the parameters that it has."""
    name, comma, parameters = language.partition(", ")
    return NOTATION.get(name, literal(name)) + comma + literal(parameters)


def draw_panels(
    panels: Mapping[str, Values],
    path: Path,
    draw_panel: Callable[[Any, Values], None],
    *,
    xlabel: str,
    ylabel: str,
    title: str,
    height: float = 3,
) -> None:
    """Draw a panel for each title.

    Args:
        panels: what is drawn, by title, in which ``$`` begins a formula.
        path: the figure to write.
        draw_panel: draws what is in one panel on ``axes``.
        xlabel: what is below the panels.
        ylabel: the label next to the panels.
        title: the message of the figure.
        height: of a panel, in inches.
    """
    rows, columns = grid(len(panels))
    size = max(3.6 * columns, 4.5), height * rows
    with figure(path, rows, columns, size, title=title) as drawn:
        for axes, (name, content) in zip(drawn.flat, panels.items(), strict=False):
            draw_panel(axes, content)
            axes.set(title=name, xlabel=xlabel)
        for axes in drawn[:, 0]:
            axes.set_ylabel(ylabel)
        draw_legend(drawn, len(panels))


def looks_of(panels: Mapping[str, Mapping[str, object]]) -> Looks:
    """The styles of all models in panels, in which they are by name."""
    return styles_of(model for models in panels.values() for model in models)
