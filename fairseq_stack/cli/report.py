"""``fairseq-stack report FOLDER``: the demo's table and picture."""

from __future__ import annotations

import argparse
import json
import logging
from pathlib import Path

from .arguments import Subparsers

DESCRIPTION = """\
Read what the demo trained in FOLDER and write table.md, results.json and demo.png
into it. Logs and checkpoints are only read. The table is printed too, and the path
of the picture."""

EXAMPLE = """\
example:
  fairseq-stack report demo-out"""

TABLE, RESULTS, PICTURE = "table.md", "results.json", "demo.png"


def add_parser(subparsers: Subparsers) -> None:
    """Declare the subcommand."""
    parser = subparsers.add_parser(
        "report",
        help="write the table and the picture of the demo",
        description=DESCRIPTION,
        epilog=EXAMPLE,
    )
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="what scripts/demo.sh wrote")
    parser.add_argument(
        "--depth", type=int, metavar="N", default=2, help="nesting of the sentence in the picture (default: 2)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write and print the report."""
    logging.basicConfig(level=logging.WARNING)  # before fairseq, which would have everything logged
    from fairseq_stack.analysis import tables
    from fairseq_stack.analysis.experiment import read_decoder, read_experiment
    from fairseq_stack.analysis.figure import draw, require_matplotlib

    require_matplotlib()
    experiment = read_experiment(args.folder)
    reading = read_decoder(args.folder, args.depth)
    table = tables.as_markdown(experiment)
    (args.folder / TABLE).write_text(f"{table}\n", encoding="utf-8")
    results = json.dumps(tables.as_json(experiment), indent=2)
    (args.folder / RESULTS).write_text(f"{results}\n", encoding="utf-8")
    draw(experiment, reading, args.folder / PICTURE)
    print(f"{table}\n\npicture: {args.folder / PICTURE}")
    return 0
