"""``fairseq-stack plot syntax NAME=RESULT...``: accuracies on BLiMP and SyntaxGym by phenomenon."""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.blimp import BLiMPResult
from fairseq_stack.evaluation.formulas import chance
from fairseq_stack.evaluation.syntaxgym import SyntaxGymResult
from fairseq_stack.files import read_text
from fairseq_stack.plots.panels import draw_legend, draw_rows
from fairseq_stack.plots.style import BOUND, figure

from .figures import add_named, add_output, looks_of, read_named, require_drawable

BLIMP, SYNTAXGYM = "BLiMP", "SyntaxGym"
OVERALL = "all"

Interval: TypeAlias = tuple[float, float, float]
Accuracies: TypeAlias = dict[str, Interval]
"""For each row the accuracy, the minimum and the maximum, in percent."""


class Read(NamedTuple):
    """What a figure takes from a result.

    Attributes:
        collection: of sentences: :data:`BLIMP` or :data:`SYNTAXGYM`.
        sentences: the part of the signature that says which they are.
        accuracies: of one run.
        chance: for each row the accuracy of random surprisals, in percent.
    """

    collection: str
    sentences: str
    accuracies: Accuracies
    chance: dict[str, float]


Restarts: TypeAlias = dict[str, list[Read]]
"""The results of each model on a collection of sentences."""


SUMMARY = "accuracies on BLiMP and SyntaxGym by phenomenon"

DESCRIPTION = """\
Draw the accuracy for each phenomenon of BLiMP and each category of SyntaxGym's
suites, with a row for each. A RESULT is a file that fairseq-stack evaluate-blimp
or evaluate-syntaxgym wrote. Several results of one NAME are restarts: the point is
their mean, and the line through it reaches from the minimum to the maximum
accuracy. A single result of BLiMP has its bootstrap interval. Dashed lines are
chance. In BLiMP it is 50 %: a pair of equally probable sentences counts one half. In
SyntaxGym it is the accuracy of random surprisals, by how many comparisons the
predictions of a category have."""

EXAMPLE = """\
example:
  fairseq-stack plot syntax Tf=tf-blimp.json Tf+Nd=nd-blimp.json \\
      Tf=tf-suites.json Tf+Nd=nd-suites.json --output syntax.png"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_named(parser)
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    require_drawable(args.output)
    draw_collections(read_accuracies(args.results), args.title, args.output)
    print(args.output)
    return 0


def read_accuracies(arguments: Sequence[str]) -> dict[str, Restarts]:
    """The results by collection of sentences."""
    collections: dict[str, Restarts] = {}
    firsts: dict[str, tuple[Path, Read]] = {}
    for name, path, read in read_named(arguments, _read):
        first, other = firsts.setdefault(read.collection, (path, read))
        if read.sentences != other.sentences or list(read.accuracies) != list(other.accuracies):
            raise UserError(
                f"{first} and {path} cannot be compared: they are on different sentences of {read.collection}, "
                "or count ends differently"
            )
        collections.setdefault(read.collection, {}).setdefault(name, []).append(read)
    return collections


def _read(path: Path) -> Read:
    rows: Accuracies
    if _kind(path) == SyntaxGymResult.kind:
        suites = SyntaxGymResult.read(path)
        if not suites.categories:
            raise UserError(f"{path}: expected suites of the categories of SyntaxGym, got none")
        shares = {category.name: category.accuracy for category in suites.categories}
        if suites.accuracy is not None:
            shares[OVERALL] = suites.accuracy
        rows = {name: (100 * share, 100 * share, 100 * share) for name, share in shares.items()}
        return Read(SYNTAXGYM, _sentences(suites.signature), rows, _chance(suites))
    pairs = BLiMPResult.read(path)
    estimates = {row.name.replace("_", " "): row.accuracy for row in (*pairs.phenomena, pairs.overall)}
    rows = {name: (100 * share.value, 100 * share.low, 100 * share.high) for name, share in estimates.items()}
    return Read(BLIMP, _sentences(pairs.signature), rows, dict.fromkeys(rows, 50.0))


def _chance(result: SyntaxGymResult) -> dict[str, float]:
    """The mean over the suites of each category, and of all that have one."""
    by_category: dict[str, list[float]] = {}
    for suite in result.suites:
        if suite.category is not None:
            by_category.setdefault(suite.category, []).append(100 * chance(suite.predictions[0].formula))
    by_category[OVERALL] = [share for shares in by_category.values() for share in shares]
    return {category: statistics.fmean(shares) for category, shares in by_category.items() if shares}


def _kind(path: Path) -> str | None:
    try:
        content = json.loads(read_text(path))
    except ValueError:
        return None  # the reader of results says what is wrong
    return content.get("kind") if isinstance(content, dict) else None


def _sentences(signature: str) -> str:
    """What a signature says about the sentences, and what counts of them."""
    facts = ("pairs", "suites", "sha", "end")
    return "|".join(part for part in signature.split("|") if part.partition(":")[0] in facts)


def _combined(runs: Sequence[Read]) -> Accuracies:
    """The accuracies of one run as they are; of several the mean, the minimum and the maximum."""
    if len(runs) == 1:
        return runs[0].accuracies
    values = {row: [run.accuracies[row][0] for run in runs] for row in runs[0].accuracies}
    return {row: (statistics.fmean(accuracies), min(accuracies), max(accuracies)) for row, accuracies in values.items()}


def _lines(name: str, restarts: Restarts) -> str:
    """What the lines through the points are."""
    numbers = sorted({len(runs) for runs in restarts.values()})
    several = " or ".join(str(number) for number in numbers if number > 1)
    meanings = [f"range of {several} runs"] if several else []
    if numbers[0] == 1 and name == BLIMP:
        meanings.append("bootstrap interval of a single run")
    return f"\nlines: {', '.join(meanings)}" if meanings else ""


def draw_collections(collections: Mapping[str, Restarts], title: str, path: Path) -> None:
    """Draw a panel for each collection of sentences."""
    looks, number = looks_of(collections), len(collections)
    firsts = [next(iter(restarts.values()))[0] for restarts in collections.values()]
    longest = max(len(first.accuracies) for first in firsts)
    with figure(path, 1, number, (4.8 * number, 1.4 + 0.32 * longest), title=title) as panels:
        for axes, (name, restarts), first in zip(panels.flat, collections.items(), firsts, strict=True):
            draw_rows(axes, {model: _combined(runs) for model, runs in restarts.items()}, looks)
            for place, row in enumerate(first.accuracies):
                if row in first.chance:
                    axes.plot([first.chance[row]] * 2, [place - 0.5, place + 0.5], label="chance", zorder=0, **BOUND)
            axes.set(title=name, xlabel=f"accuracy (%){_lines(name, restarts)}", xlim=(0, 100))
        draw_legend(panels, number)
