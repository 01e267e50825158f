"""``fairseq-stack inspect --show readings``: the readings of many sentences in two principal components, by symbol."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairseq_stack.errors import UserError
from fairseq_stack.files import written_whole
from fairseq_stack_preprocess.text.progress import progress

from .layers import chosen
from .sentences import sentences_of

if TYPE_CHECKING:
    from torch import Tensor

    from fairseq_stack.hub.interface import Hub
    from fairseq_stack.inspection.readings import Readings

MOST_SYMBOLS = 14
"""A picture tells so many symbols apart, the most frequent ones."""


def add_readings(parser: argparse.ArgumentParser) -> None:
    """Declare how the readings are named."""
    parser.add_argument(
        "--by",
        choices=("input", "prediction"),
        default="input",
        help="for --show readings: name a reading after the last input before it, or after the first word that is "
        "predicted with it: the next one in attention, the next but one in an LSTM; encoders are left out "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--after", metavar="WORD", help="for --show readings: leave out the readings of a sentence before this word"
    )


def inspect_readings(hub: Hub, args: argparse.Namespace) -> None:
    """Write the picture or the numbers.

    Raises:
        UserError: an option does not fit, or the model cannot read a sentence.
    """
    if args.output.suffix in (".gv", ".tex", ".tsv"):
        raise UserError(f"--output with {args.output.suffix}: expected .json or a picture of the readings")
    from fairseq_stack.inspection.readings import principal_components, readings

    sentences = sentences_of(hub, args)
    read = progress(sentences, label="sentences", total=len(sentences), unit="sentence")
    stacks = chosen(readings(hub, read, by=args.by, after=args.after), args.checkpoint, args.layer)
    components = [principal_components(stack.vectors) for stack in stacks]
    if args.output.suffix == ".json":
        text = json.dumps(list(map(_as_json, stacks, components)), indent=2, ensure_ascii=False)
        with written_whole(args.output) as file:
            file.write(f"{text}\n".encode())
    else:
        draw(stacks, components, args.by, args.output)


def _as_json(stack: Readings, components: tuple[Tensor, Tensor]) -> dict[str, Any]:
    coordinates, shares = components
    points = zip(stack.places, coordinates.tolist(), strict=True)
    return {
        "layer": stack.layer,
        "size": stack.vectors.shape[1],
        "shares_of_variance": shares.tolist(),
        "readings": [{**place._asdict(), "components": point} for place, point in points],
    }


def draw(stacks: Sequence[Readings], components: Sequence[tuple[Tensor, Tensor]], by: str, path: Path) -> None:
    """A panel for each stack; the symbols have the same colours and markers in all panels."""
    from fairseq_stack.plots.points import draw_points
    from fairseq_stack.plots.style import figure, grid, require_matplotlib

    require_matplotlib()
    counts = Counter(place.symbol for stack in stacks for place in stack.places)
    shown = sorted(symbol for symbol, _ in counts.most_common(MOST_SYMBOLS))
    title = {"input": "last input", "prediction": "predicted with it"}[by]
    rows, columns = grid(len(stacks))
    with figure(path, rows, columns, (6.2 * columns, 4.6 * rows), path.suffix[1:]) as panels:
        for axes, stack, (coordinates, shares) in zip(panels.flat, stacks, components, strict=False):
            symbols = [place.symbol for place in stack.places]
            draw_points(axes, coordinates.tolist(), symbols, shown, title)
            numbers = [
                f"principal component {i} ({100 * share:.0f} % of the variance)"
                for i, share in enumerate(shares.tolist(), 1)
            ]
            axes.set(xlabel=numbers[0], ylabel=numbers[1])
            axes.set_title(f"{stack.layer}: {len(symbols):,} readings", loc="left")
        for axes in panels.flat[len(stacks) :]:
            axes.set_axis_off()
