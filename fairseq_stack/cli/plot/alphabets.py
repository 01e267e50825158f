"""``fairseq-stack plot alphabets NAME=RESULT...``: the cross-entropy difference by size of the alphabet."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from fairseq_stack.evaluation.cfl_comparison import difference_by_alphabet
from fairseq_stack.evaluation.results import Estimate

from .figures import (
    DIFFERENCE,
    RESTARTS,
    add_log,
    add_output,
    add_restarts,
    draw_estimates,
    draw_panels,
    looks_of,
    read_comparison,
    require_drawable,
    scale_differences,
    title_of,
)

SUMMARY = "the cross-entropy difference by size of the alphabet"

DESCRIPTION = f"""\
Draw the cross-entropy difference on languages with alphabets of several sizes
(--symbol-types or --bracket-types of fairseq-stack prepare cfl), as in DuSell and
Chiang (2023), with a panel for each language. The band around a line is its
bootstrap interval, or with --mean one standard deviation.

{RESTARTS}"""

EXAMPLE = """\
example:
  fairseq-stack plot alphabets LSTM=out/dyck-2.json LSTM=out/dyck-40.json \\
      LSTM+Nd=out/dyck-2-nd.json LSTM+Nd=out/dyck-40-nd.json --output alphabets.pdf"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_restarts(parser)
    add_output(parser)
    add_log(parser)


def run(args: argparse.Namespace) -> int:
    require_drawable(args.output)
    comparison = read_comparison(args)
    panels = difference_by_alphabet(comparison)
    looks = looks_of(panels)

    def draw_panel(axes: Any, models: Mapping[str, Mapping[int, Estimate]]) -> None:
        draw_estimates(axes, models, looks)
        scale_differences(axes, log=args.log)

    titled = {title_of(language): models for language, models in panels.items()}
    xlabel = "symbols, or kinds of brackets"
    draw_panels(titled, args.output, draw_panel, xlabel=xlabel, ylabel=DIFFERENCE, title=args.title)
    print(*comparison.notes, args.output, sep="\n")
    return 0
