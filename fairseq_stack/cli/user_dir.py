"""``fairseq-stack user-dir``: the path that fairseq's commands take as ``--user-dir``."""

from __future__ import annotations

import argparse
from pathlib import Path

SUMMARY = "print the path to give to fairseq's commands as --user-dir"

DESCRIPTION = "Print the path to give to fairseq's commands as --user-dir."

EXAMPLE = """\
example:
  fairseq-train data-bin --user-dir $(fairseq-stack user-dir) --help"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """There are none."""


def run(args: argparse.Namespace) -> int:
    """Print the absolute path of the package ``fairseq_stack``."""
    print(Path(__file__).absolute().parent.parent)
    return 0
