"""``fairseq-stack average CHECKPOINT...``: one checkpoint from several."""

from __future__ import annotations

import argparse
from pathlib import Path

from fairseq_stack.errors import UserError

from .arguments import Subparsers

DESCRIPTION = """\
Average the parameters of checkpoints from one training run, or from several runs of
the same architecture on the same vocabulary. All commands of fairseq accept the
result. It has the configuration of the first checkpoint and no optimizer state.
Name the checkpoints, or name one folder (the --save-dir of a training run) and say
how many of its last checkpoints to average."""

EXAMPLE = """\
examples:
  fairseq-stack average checkpoints/checkpoint8.pt checkpoints/checkpoint9.pt \\
      --output checkpoints/average.pt
  fairseq-stack average checkpoints --num-epoch-checkpoints 5 \\
      --output checkpoints/average.pt"""


def add_parser(subparsers: Subparsers) -> None:
    """Declare the subcommand."""
    parser = subparsers.add_parser(
        "average", help="average the parameters of checkpoints", description=DESCRIPTION, epilog=EXAMPLE
    )
    parser.add_argument("checkpoints", metavar="CHECKPOINT", type=Path, nargs="+", help="checkpoints, or one folder")
    parser.add_argument("--output", metavar="FILE", type=Path, required=True, help="the checkpoint to write")
    last = parser.add_mutually_exclusive_group()
    last.add_argument(
        "--num-epoch-checkpoints", metavar="N", type=int, help="average the last N checkpointEPOCH.pt in the folder"
    )
    last.add_argument(
        "--num-update-checkpoints",
        metavar="N",
        type=int,
        help="average the last N checkpoint_EPOCH_UPDATE.pt in the folder",
    )
    parser.add_argument(
        "--checkpoint-upper-bound", metavar="M", type=int, help="ignore checkpoints after epoch M or update M"
    )
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the average."""
    from fairseq_stack.companions import companions_beside, save_companions
    from fairseq_stack.models.averaging import average_checkpoints

    paths = _selected(args)
    average_checkpoints(paths, args.output, force=args.force)
    save_companions(companions_beside(paths[0]), args.output.parent)
    print(f"{args.output}: the average of {', '.join(map(str, paths))}")
    return 0


def _selected(args: argparse.Namespace) -> list[Path]:
    from fairseq_stack.models.averaging import EPOCHS, UPDATES, last_checkpoints

    by_updates = args.num_update_checkpoints is not None
    count = args.num_update_checkpoints if by_updates else args.num_epoch_checkpoints
    if count is None:
        if args.checkpoint_upper_bound is not None:
            raise UserError("--checkpoint-upper-bound needs --num-epoch-checkpoints or --num-update-checkpoints")
        return list(args.checkpoints)
    flag = "--num-update-checkpoints" if by_updates else "--num-epoch-checkpoints"
    if count < 1:
        raise UserError(f"{flag}: expected at least 1, got {count}")
    if len(args.checkpoints) != 1:
        raise UserError(f"{flag} needs one folder, got {len(args.checkpoints)} names")
    return last_checkpoints(args.checkpoints[0], UPDATES if by_updates else EPOCHS, count, args.checkpoint_upper_bound)
