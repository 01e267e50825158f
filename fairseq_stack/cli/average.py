"""``fairseq-stack average CHECKPOINT...``: one checkpoint from several."""

from __future__ import annotations

import argparse
from pathlib import Path

SUMMARY = "average the parameters of checkpoints"

DESCRIPTION = """\
Average the parameters of checkpoints from one training run, or from several runs of
the same architecture on the same vocabulary. All commands of fairseq accept the
result. It has the configuration of the first checkpoint and no optimizer state."""

EXAMPLE = """\
example:
  fairseq-stack average checkpoints/checkpoint{6..10}.pt --output average.pt"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoints", metavar="CHECKPOINT", type=Path, nargs="+", help="a checkpoint")
    parser.add_argument("--output", metavar="FILE", type=Path, required=True, help="the checkpoint to write")
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists")


def run(args: argparse.Namespace) -> int:
    from fairseq_stack.companions import companions_beside, missing_companions, write
    from fairseq_stack.models.averaging import average_checkpoints

    beside = companions_beside(args.checkpoints[0])
    companions = missing_companions(beside, args.output.parent, replace_manifest=False)
    average_checkpoints(args.checkpoints, args.output, force=args.force)
    write(companions)
    print(f"{args.output}: the average of {', '.join(map(str, args.checkpoints))}")
    return 0
