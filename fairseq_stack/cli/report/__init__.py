"""``fairseq-stack report FOLDER``: the demo's table and picture."""

from __future__ import annotations

import argparse
import json
import logging
import os
from pathlib import Path

from fairseq_stack.errors import UserError
from fairseq_stack.files import require_writable, written_whole
from fairseq_stack_preprocess.errors import require_at_least

from ..arguments import Subparsers

DESCRIPTION = """\
Read the logs and checkpoints of the demo in FOLDER, and write table.md, results.json
and demo.png there. Logs and checkpoints do not change. The table and the path of the
picture are also printed."""

EXAMPLE = """\
example:
  fairseq-stack report demo-out"""

TABLE, RESULTS, PICTURE = "table.md", "results.json", "demo.png"

RESULTS_KEYS = {"translation"}
"""Keys that the results of every report have, also of earlier versions."""


def add_parser(subparsers: Subparsers) -> None:
    """Declare the subcommand."""
    parser = subparsers.add_parser(
        "report",
        help="write the table and the picture of the demo",
        description=DESCRIPTION,
        epilog=EXAMPLE,
    )
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="the folder that scripts/demo.sh wrote")
    parser.add_argument(
        "--length", type=int, metavar="N", default=24, help="brackets of the string in the picture (default: 24)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write and print the report."""
    logging.basicConfig(level=logging.WARNING)  # before fairseq, which would log everything
    from fairseq_stack.plots.style import require_matplotlib

    from . import tables
    from .experiment import read_experiment, read_run
    from .picture import draw

    require_matplotlib()
    require_at_least("--length", args.length, 1)
    _check_replaceable(args.folder)
    experiment = read_experiment(args.folder)
    for name in (RESULTS, TABLE, PICTURE):
        require_writable(args.folder / name)
    stack = read_run(args.folder, args.length)
    table = tables.as_markdown(experiment)
    results = json.dumps(tables.as_json(experiment), indent=2)
    # The results come first: from them the next report sees that the other files also belong to a report.
    for name, text in ((RESULTS, results), (TABLE, table)):
        with written_whole(args.folder / name) as file:
            file.write(f"{text}\n".encode())
    draw(experiment, stack, args.folder / PICTURE)
    print(f"{table}\n\npicture: {args.folder / PICTURE}")
    return 0


def _check_replaceable(folder: Path) -> None:
    """Raise UserError if the folder has a file with a report's file name that no report wrote."""
    there = [name for name in (TABLE, RESULTS, PICTURE) if os.path.lexists(folder / name)]
    if not there:
        return
    try:
        results = json.loads((folder / RESULTS).read_bytes())
    except (OSError, ValueError, RecursionError):
        results = None
    if not isinstance(results, dict) or not set(results) >= RESULTS_KEYS:
        raise UserError(f"{folder / there[0]} was not written by fairseq-stack report; move it elsewhere")
