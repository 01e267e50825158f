"""``fairseq-stack plot syntax NAME=RESULT...``: accuracies on BLiMP and SyntaxGym by phenomenon."""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.blimp import BLiMPResult
from fairseq_stack.evaluation.syntaxgym.syntaxgym_result import SyntaxGymResult
from fairseq_stack.files import read_text
from fairseq_stack.plots.panels import draw_legend, draw_rows
from fairseq_stack.plots.style import figure

from .figures import Figure, add_named, looks_of, read_named

BLIMP, SYNTAXGYM = "BLiMP", "SyntaxGym"
OVERALL = "all"

Interval: TypeAlias = tuple[float, float, float]
Accuracies: TypeAlias = dict[str, Interval]
"""For each row the accuracy, the minimum and the maximum, in percent."""


class Syntax(Figure):
    """Accuracies on BLiMP and SyntaxGym."""

    name = "syntax"
    summary = "accuracies on BLiMP and SyntaxGym by phenomenon"
    description = """\
Draw the accuracy for each phenomenon of BLiMP and each category of SyntaxGym's
suites, with a row for each. A RESULT is a file that fairseq-stack evaluate-blimp
or evaluate-syntaxgym wrote. Several results of one NAME are restarts: the point is
their mean, and the line through it reaches from the minimum to the maximum
accuracy. A single result of BLiMP has its bootstrap interval. The dashed line is
chance: a pair of equally probable sentences counts one half."""
    example = """\
example:
  fairseq-stack plot syntax Tf=tf-blimp.json Tf+Nd=nd-blimp.json \\
      Tf=tf-suites.json Tf+Nd=nd-suites.json --output syntax.png"""

    add_results = staticmethod(add_named)

    def draw(self, args: argparse.Namespace) -> Sequence[str]:
        draw_collections(read_accuracies(args.results), args.output)
        return ()


def read_accuracies(arguments: Sequence[str]) -> dict[str, dict[str, Accuracies]]:
    """The accuracies by collection of sentences and model.

    Raises:
        UserError: a result has no name, cannot be read, or is of another command; or results that stand side by side
            are on different sentences.
    """
    restarts: dict[str, dict[str, list[Accuracies]]] = {}
    contents: dict[str, tuple[Path, tuple[str, list[str]]]] = {}
    for name, path, (collection, sha, rows) in read_named(arguments, _read):
        first, content = contents.setdefault(collection, (path, (sha, list(rows))))
        if content != (sha, list(rows)):
            raise UserError(f"{first} and {path} cannot be compared: they are on different sentences of {collection}")
        restarts.setdefault(collection, {}).setdefault(name, []).append(rows)
    return {
        collection: {name: _combined(runs) for name, runs in models.items()} for collection, models in restarts.items()
    }


def _read(path: Path) -> tuple[str, str, Accuracies]:
    """The collection, the part of the signature that says which sentences, and the accuracies."""
    rows: Accuracies
    if _kind(path) == SyntaxGymResult.kind:
        suites = SyntaxGymResult.read(path)
        shares = {category.name: category.accuracy for category in suites.categories}
        if suites.accuracy is not None:
            shares[OVERALL] = suites.accuracy
        rows = {name: (100 * share, 100 * share, 100 * share) for name, share in shares.items()}
        return SYNTAXGYM, _sentences(suites.signature), rows
    pairs = BLiMPResult.read(path)
    estimates = {row.name.replace("_", " "): row.accuracy for row in (*pairs.phenomena, pairs.overall)}
    rows = {name: (100 * share.value, 100 * share.low, 100 * share.high) for name, share in estimates.items()}
    return BLIMP, _sentences(pairs.signature), rows


def _kind(path: Path) -> str | None:
    try:
        content = json.loads(read_text(path))
    except (ValueError, RecursionError, OSError):
        return None  # the reader of results says what is wrong
    return content.get("kind") if isinstance(content, dict) else None


def _sentences(signature: str) -> str:
    """What a signature says about the sentences."""
    return "|".join(part for part in signature.split("|") if part.partition(":")[0] in ("pairs", "suites", "sha"))


def _combined(runs: Sequence[Accuracies]) -> Accuracies:
    """The accuracies of one run as they are; of several the mean, the minimum and the maximum."""
    if len(runs) == 1:
        return runs[0]
    values = {row: [run[row][0] for run in runs] for row in runs[0]}
    return {row: (statistics.fmean(accuracies), min(accuracies), max(accuracies)) for row, accuracies in values.items()}


def draw_collections(collections: Mapping[str, Mapping[str, Accuracies]], path: Path) -> None:
    """Draw a panel for each collection of sentences."""
    looks = looks_of(collections)
    number = len(collections)
    longest = max(len(next(iter(models.values()))) for models in collections.values())
    with figure(path, 1, number, (4.8 * number, 1.2 + 0.32 * longest), path.suffix[1:]) as panels:
        for axes, (collection, models) in zip(panels.flat, collections.items(), strict=True):
            draw_rows(axes, models, looks)
            if collection == BLIMP:
                axes.axvline(50, color="0.3", linestyle="--", zorder=0)
            axes.set(title=collection, xlabel="accuracy (%)", xlim=(0, 100))
        draw_legend(panels, number)


add_parser = Syntax().add_parser
